package files

import (
	"errors"
	"time"
)

// Errors of requests that the state of a file or of its entity does not permit.
var (
	// ErrNotFound is also returned if the caller may not see the file.
	ErrNotFound    = errors.New("file not found")
	ErrState       = errors.New("not allowed in the file's state")
	ErrQuota       = errors.New("quota exceeded")
	ErrOpenUploads = errors.New("too many open uploads")
	// ErrInterrupted is returned if the bytes did not arrive. The upload is expired.
	ErrInterrupted = errors.New("the upload was interrupted: send it again")
	ErrKeyUsed     = errors.New("idempotency key used for another upload")
)

// newFile returns the row of a new upload. signed must be before the row is written.
func newFile(id, entity, key, idempotency string, p Promise, signed time.Time, t *Times) File {
	putBy := signed.Add(t.URL)
	if p.PartSize > 0 {
		putBy = signed.Add(t.Parts)
	}
	landBy := putBy.Add(t.Upload)
	return File{
		ID: id, Entity: entity, Key: key, Promise: p, Idempotency: idempotency, State: Pending,
		PutBy: putBy, LandBy: landBy, DueAt: landBy, CreatedAt: signed, UpdatedAt: signed,
	}
}

// objectRemovable is true in the states after which a file never becomes visible again.
func (f *File) objectRemovable() bool {
	return f.State == Purging || f.State == Gone || f.State == Expired
}

type decision uint8

const (
	unchanged decision = iota // write nothing
	updated                   // write the row
	dropped                   // delete the row
)

// reconciled returns the row after a reconciliation. The caller must load the row before it reads
// the object.
//
// LandBy is compared only with the store's clock. For a multipart file at or after LandBy, s must
// be read after its uploads were aborted, so that none can complete later.
func (f File) reconciled(s ObjectInfo, notified bool, t *Times, now time.Time) (File, decision) {
	landed := !s.Date.Before(f.LandBy) // no upload can land any more
	switch f.State {
	case Pending, Lost:
		if f.matches(s) {
			return f.move(Indexed, f.multipartCleanupAt(s), now), updated
		}
		if f.State == Pending && landed {
			return f.toTombstone(Expired, t, now), updated
		}
	case Indexed:
		if !f.matches(s) {
			return f.move(Lost, now.Add(lostRecheckDelay), now), updated
		}
		if landed && !f.DueAt.IsZero() {
			return f.move(Indexed, time.Time{}, now), updated
		}
	case Deleted:
		if landed && !now.Before(f.windowEnd(t)) {
			return f.move(Purging, now, now), updated
		}
	case Purging:
		if !s.Found {
			return f.toTombstone(Gone, t, now), updated
		}
	case Gone, Expired:
		if !s.Found && landed && !now.Before(f.DropAt) {
			return f, dropped
		}
	}
	return f.bump(s, notified, t, now)
}

// lostRecheckDelay is the delay before a lost file is reconciled again. The object may have
// returned while the process that marked it as lost was suspended. The notification of that return
// found the file Indexed.
const lostRecheckDelay = time.Minute

func (f *File) multipartCleanupAt(s ObjectInfo) time.Time {
	if f.PartSize == 0 || !s.Date.Before(f.LandBy) {
		return time.Time{}
	}
	return f.LandBy
}

// bump writes a new nonce if a notification finds no matching object, so that an undelete with an
// older HEAD cannot land. It resets a timer that is due too early by the store's clock.
func (f File) bump(s ObjectInfo, notified bool, t *Times, now time.Time) (File, decision) {
	early := !f.DueAt.IsZero() && !now.Before(f.DueAt)
	if early && f.State == Lost && f.multipartCleanupAt(s).IsZero() {
		f.DueAt = time.Time{}
	} else if early {
		f.DueAt = now.Add(max(f.LandBy.Sub(s.Date), 0) + time.Minute)
		if own := f.windowEnd(t); own.After(f.DueAt) {
			f.DueAt = own
		}
	}
	if early || notified && !f.matches(s) && (f.State == Pending || f.State == Deleted || f.State == Lost) {
		f.UpdatedAt = now
		return f, updated
	}
	return f, unchanged
}

func (f *File) windowEnd(t *Times) time.Time {
	switch f.State {
	case Deleted:
		return f.DeletedAt.Add(t.Undelete)
	case Gone, Expired:
		return f.DropAt
	}
	return time.Time{}
}

// rescheduled changes the nonce, so that an undelete which read the object before the notification
// must read it again.
func (f File) rescheduled(now time.Time) File {
	if at := now.Add(time.Minute); f.DueAt.IsZero() || f.DueAt.After(at) {
		f.DueAt = at
	}
	f.UpdatedAt = now
	return f
}

func (f File) move(to State, dueAt, now time.Time) File {
	f.State, f.DueAt, f.UpdatedAt = to, dueAt, now
	return f
}

func (f File) toTombstone(as State, t *Times, now time.Time) File {
	f.DropAt = now
	if f.LandBy.After(now) {
		f.DropAt = f.LandBy
	}
	f.DropAt = f.DropAt.Add(t.tombstoneRetention())
	return f.move(as, f.DropAt, now)
}

func (f File) uploadFailed(t *Times, now time.Time) (File, bool) {
	if f.State != Pending {
		return f, false
	}
	return f.toTombstone(Expired, t, now), true
}

func (f File) deleted(t *Times, now time.Time) (File, error) {
	if !f.Deletable() {
		return f, ErrState
	}
	f.WasPending = f.State == Pending
	return f.moveToDeleted(t, now), nil
}

func (f File) windowRestarted(t *Times, now time.Time) (File, error) {
	if f.State != Deleted {
		return f, errNoChange
	}
	return f.moveToDeleted(t, now), nil
}

func (f File) moveToDeleted(t *Times, now time.Time) File {
	f.DeletedAt = now
	at := now.Add(t.Undelete)
	if f.LandBy.After(at) {
		at = f.LandBy
	}
	return f.move(Deleted, at, now)
}

// The caller of undeleted must load the row before it reads the object.
func (f File) undeleted(s ObjectInfo, now time.Time) (File, error) {
	switch {
	case f.State != Deleted:
		return f, ErrState
	case f.matches(s):
		s.Date = time.Time{} // the multipart uploads were not aborted yet
		return f.move(Indexed, f.multipartCleanupAt(s), now), nil
	case f.WasPending && s.Date.Before(f.LandBy):
		return f.move(Pending, f.LandBy, now), nil
	}
	return f, ErrState
}

func usageDelta(from, to *File) (u Usage) {
	if to != nil {
		u = to.Usage()
	}
	if from != nil {
		was := from.Usage()
		u.Bytes -= was.Bytes
		u.Open -= was.Open
	}
	return u
}
