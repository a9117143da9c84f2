package lock

import "slices"

// version is the state of a lease object, as it was read or written.
type version struct {
	exists bool
	etag   string
	rec    Record
}

// fate is what became of a write.
type fate uint8

const (
	open       fate = iota // it may not have landed: nothing has changed
	landed                 // it is what is there now
	superseded             // it had landed, and another has written after it
	lost                   // another has written instead: it will never land
)

func (f fate) String() string { return [...]string{"open", "landed", "superseded", "lost"}[f] }

// classify tells the fate of a write with this nonce, sent on the condition that
// the object is base, from what is there now.
//
// Versions are told apart by nonce: the ETag that comes with a read may be that
// of the object before.
//
// What is lost stays lost: each version has an ETag of its own, which never
// comes back, so that a late copy finds its condition broken. Only where an
// object was deleted can a copy of the very first write land later.
func classify(now, base version, nonce string) fate {
	switch {
	case now.exists && now.rec.Nonce == nonce:
		return landed
	case now.exists && slices.Contains(now.rec.Before, nonce):
		return superseded
	case !now.exists && !base.exists, now.exists && base.exists && now.rec.Nonce == base.rec.Nonce:
		return open
	}
	return lost
}
