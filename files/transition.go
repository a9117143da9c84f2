package files

import (
	"errors"
	"time"
)

// Errors of requests that the state of a file or of its entity does not permit.
var (
	// ErrNotFound is returned if the file does not exist, or if the caller may not see it.
	ErrNotFound = errors.New("file not found")
	// ErrState is returned if the state of the file does not permit the request.
	ErrState = errors.New("not allowed in the file's state")
	// ErrQuota is returned if the upload exceeds the quota of the entity.
	ErrQuota = errors.New("quota exceeded")
	// ErrOpenUploads is returned if the entity has too many open uploads.
	ErrOpenUploads = errors.New("too many open uploads")
	// ErrInterrupted is returned if the bytes did not arrive. The upload is expired.
	ErrInterrupted = errors.New("the upload was interrupted: send it again")
	// ErrKeyUsed is returned if the idempotency key was used for a different upload.
	ErrKeyUsed = errors.New("idempotency key used for another upload")
)

// newFile returns the row of a new upload. signed is the time of the signature, and must be before
// the row is written.
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

// objectRemovable reports whether the object may be removed. The file never becomes visible
// again in these states.
func (f *File) objectRemovable() bool {
	return f.State == Purging || f.State == Gone || f.State == Expired
}

// decision is the result of a reconciliation.
type decision uint8

const (
	unchanged decision = iota // write nothing
	updated                   // write the row
	dropped                   // delete the row
)

// reconciled returns the row after a reconciliation. The caller must load the row before it reads
// the object. notified has an effect only if the state does not change; see [File.bump].
//
// reconciled compares LandBy only with times of the store's clock. For a multipart file at or after
// LandBy, s must be the state of the object after all uploads of the file were aborted, so that no
// upload can complete later.
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

// lostRecheckDelay is the delay before a lost file is reconciled again. The process that marked it
// as lost may have been suspended while the object returned, and when the notification of that
// return arrived, the file was still Indexed.
const lostRecheckDelay = time.Minute

// multipartCleanupAt returns the time at which to abort open multipart uploads, or zero if
// there are none.
func (f *File) multipartCleanupAt(s ObjectInfo) time.Time {
	if f.PartSize == 0 || !s.Date.Before(f.LandBy) {
		return time.Time{}
	}
	return f.LandBy
}

// bump returns the row of a file whose state does not change. If a notification finds no matching
// object, the row still gets a new nonce, so that an undelete that read the object earlier cannot
// land. If the timer is due but still too early by the store's clock, bump sets the timer again.
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

// windowEnd returns the end of the undelete window or of the tombstone retention.
func (f *File) windowEnd(t *Times) time.Time {
	switch f.State {
	case Deleted:
		return f.DeletedAt.Add(t.Undelete)
	case Gone, Expired:
		return f.DropAt
	}
	return time.Time{}
}

// rescheduled returns the row of a file that could not be reconciled after a notification. Its
// nonce is new, so an undelete that read the object before the notification fails with a
// conflict and reads the object again.
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

// toTombstone returns the row as a tombstone in the given state.
func (f File) toTombstone(as State, t *Times, now time.Time) File {
	f.DropAt = now
	if f.LandBy.After(now) {
		f.DropAt = f.LandBy
	}
	f.DropAt = f.DropAt.Add(t.tombstoneRetention())
	return f.move(as, f.DropAt, now)
}

// uploadFailed returns the row after an upload through the service was interrupted.
func (f File) uploadFailed(t *Times, now time.Time) (File, bool) {
	if f.State != Pending {
		return f, false
	}
	return f.toTombstone(Expired, t, now), true
}

// deleted returns the row after its user deletes the file.
func (f File) deleted(t *Times, now time.Time) (File, error) {
	if !f.Deletable() {
		return f, ErrState
	}
	f.WasPending = f.State == Pending
	return f.moveToDeleted(t, now), nil
}

// windowRestarted returns the row of a deleted file with a new undelete window.
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

// undeleted returns the row after its user undeletes the file. The caller must load the row
// before it reads the object.
func (f File) undeleted(s ObjectInfo, now time.Time) (File, error) {
	switch {
	case f.State != Deleted:
		return f, ErrState
	case f.matches(s):
		s.Date = time.Time{} // schedule their abort: the multipart uploads were not aborted yet
		return f.move(Indexed, f.multipartCleanupAt(s), now), nil
	case f.WasPending && s.Date.Before(f.LandBy):
		return f.move(Pending, f.LandBy, now), nil
	}
	return f, ErrState
}

// usageDelta returns the change of the entity's usage by a transition. A nil file means that there
// is no row.
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
