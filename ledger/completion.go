package ledger

import (
	"errors"
	"time"
)

// ErrNotHeld says that an attempt has lost its lease to another, so that it must
// not commit anything.
var ErrNotHeld = errors.New("the lease is another's by now: roll back")

// Completion is the end of an attempt that its handler writes itself, in the same
// transaction as its effect: both are committed, or neither. The store must be able
// to keep the row from changing between reading it and the commit.
type Completion struct {
	Store Store // that has the row
	Claim Claim
	Read  Read
	Now   time.Time
	Nonce Nonce // fresh
}

// Over returns the row that replaces the one that stands. It goes by the fence and
// not by the nonce, because renewals go on meanwhile; [ErrNotHeld]: another has the
// lease, or this attempt has ended already.
func (c *Completion) Over(row *Row) (Row, error) {
	if row.Unreadable != nil {
		return Row{}, row.Unreadable
	}
	next, ok := row.Complete(&c.Claim, &Ending{Read: c.Read}, true, &Policy{}, c.Now) // sure: no policy is needed
	if !ok {
		return Row{}, ErrNotHeld
	}
	next.Nonce = c.Nonce
	return next, nil
}

// CommittedBy reports that the attempt of a has completed, whoever has changed the
// row since without claiming it. Only its own completion ends a lease like that: one
// that another worker ended by retiring the row leaves it dead, or Have behind.
func (r *Row) CommittedBy(a *Claim) bool {
	return !r.Held() && !r.Dead && r.Lease.Fence == a.Fence && r.Have.Compare(a.Want) >= 0
}
