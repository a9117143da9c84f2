package files

import (
	"errors"
	"time"
)

// Why a request is refused.
var (
	// ErrNotFound: no such file, or none that the caller may see.
	ErrNotFound = errors.New("file not found")
	// ErrState: the file's state does not allow it.
	ErrState = errors.New("not allowed in the file's state")
	// ErrQuota: the entity has not enough of its quota left.
	ErrQuota = errors.New("quota exceeded")
	// ErrOpenUploads: the entity has too many uploads that are not complete.
	ErrOpenUploads = errors.New("too many open uploads")
	// ErrInterrupted: the bytes did not arrive, and the upload was given up.
	ErrInterrupted = errors.New("the upload was interrupted: send it again")
	// ErrKeyUsed: the idempotency key was used for another upload.
	ErrKeyUsed = errors.New("idempotency key used for another upload")
)

// newFile returns the row of an upload whose URL was signed at a time that lies
// before the row is written.
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

// objectRemovable reports that the file's object may be removed: the states are those
// that no file leaves alive.
func (f *File) objectRemovable() bool {
	return f.State == Purging || f.State == Gone || f.State == Expired
}

// decision says what follows from a look.
type decision uint8

const (
	unchanged decision = iota // nothing is to be written
	updated                   // the row is to be written
	dropped                   // the row is to be deleted
)

// reconciled returns the row after a look. The row was loaded before the store was
// asked. Whether a look comes from a notification makes no difference but for
// what it finds unchanged: see [File.touched].
//
// LandBy is compared with the store's clock alone. Of a file in parts s is what was
// there after its uploads were ended, if it is not before LandBy: nothing completes
// them any more, and none is left over.
func (f File) reconciled(s ObjectInfo, notified bool, t *Times, now time.Time) (File, decision) {
	landed := !s.Date.Before(f.LandBy) // nothing lands any more
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

// lostRecheckDelay is when a file that was found to be lost is looked at once more. The
// look that found it may have slept while the object came back, and the notification
// of that was heard while the file was Indexed still.
const lostRecheckDelay = time.Minute

// multipartCleanupAt is when to look for uploads in parts that were begun and not completed;
// zero: none is open.
func (f *File) multipartCleanupAt(s ObjectInfo) time.Time {
	if f.PartSize == 0 || !s.Date.Before(f.LandBy) {
		return time.Time{}
	}
	return f.LandBy
}

// bump is a row that a look finds as it was. A look by notice that finds no
// good object still writes a new nonce, where an undelete that looked before may be
// under way: it must not land after. A timer that comes too early, by the store's
// clock, is set again.
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

// windowEnd is when the time of a deleted file or of a tombstone is over.
func (f *File) windowEnd(t *Times) time.Time {
	switch f.State {
	case Deleted:
		return f.DeletedAt.Add(t.Undelete)
	case Gone, Expired:
		return f.DropAt
	}
	return time.Time{}
}

// rescheduled is the row of a file that could not be reconciled at a notification. It has a
// new nonce: an undelete that looked before the notification must not land after it.
func (f File) rescheduled(now time.Time) File {
	if at := now.Add(time.Minute); f.DueAt.IsZero() || f.DueAt.After(at) {
		f.DueAt = at
	}
	f.UpdatedAt = now
	return f
}

func (f File) move(to State, lookAt, now time.Time) File {
	f.State, f.DueAt, f.UpdatedAt = to, lookAt, now
	return f
}

// toTombstone makes the row a tombstone.
func (f File) toTombstone(as State, t *Times, now time.Time) File {
	f.DropAt = now
	if f.LandBy.After(now) {
		f.DropAt = f.LandBy
	}
	f.DropAt = f.DropAt.Add(t.tombstoneRetention())
	return f.move(as, f.DropAt, now)
}

// uploadFailed is the row of an upload that the service itself made and that broke off.
func (f File) uploadFailed(t *Times, now time.Time) (File, bool) {
	if f.State != Pending {
		return f, false
	}
	return f.toTombstone(Expired, t, now), true
}

// deleted is the row after its user deletes the file.
func (f File) deleted(t *Times, now time.Time) (File, error) {
	if !f.Deletable() {
		return f, ErrState
	}
	f.WasPending = f.State == Pending
	return f.moveToDeleted(t, now), nil
}

// windowRestarted is the row of a deleted file whose undelete window begins again.
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

// undeleted is the row after its user wants the file back, by a look that followed
// the loading of the row.
func (f File) undeleted(s ObjectInfo, now time.Time) (File, error) {
	switch {
	case f.State != Deleted:
		return f, ErrState
	case f.matches(s):
		s.Date = time.Time{} // uploads in parts were not ended
		return f.move(Indexed, f.multipartCleanupAt(s), now), nil
	case f.WasPending && s.Date.Before(f.LandBy):
		return f.move(Pending, f.LandBy, now), nil
	}
	return f, ErrState
}

// usageDelta returns the change of the entity's usage by a transition. A nil file has no row.
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
