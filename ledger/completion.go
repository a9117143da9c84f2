package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/store"
)

// ErrNotHeld says that an attempt has lost its lease to another, so that it must
// not commit anything.
var ErrNotHeld = errors.New("another worker has the lease: roll back")

// Task is an attempt that can be completed in a transaction: a pawl.Task of a pipeline
// that is declared transactional.
type Task interface {
	Completion() (*Completion, error)
}

// Complete completes a task in the transaction of its handler, in the ledger's own
// database. The handler's writes and Have are committed together, or neither is. So the
// effect happens exactly once.
//
// Call it last, and commit: it locks the row, and the lease cannot be renewed before the
// transaction ends. After an error, roll back and return the error. [ErrNotHeld] is
// returned when another worker has the object.
//
// What a handler returns after the commit does not matter: the row shows whether the
// commit landed, even if its answer was lost.
func Complete(ctx context.Context, tx store.Tx, t Task) error {
	c, err := t.Completion()
	if err != nil {
		return err
	}
	found, err := tx.Lock(ctx, recordKey(c.Claim.Key))
	if err != nil {
		return fmt.Errorf("ledger: complete %s: %w", c.Claim.Key, err)
	}
	if found == nil {
		return fmt.Errorf("ledger: complete %s: the row is missing, or the transaction belongs to another database: %w", c.Claim.Key, ErrNotHeld)
	}
	row := Decode(c.Claim.Key, found.Nonce, found.Body)
	next, err := c.Apply(&row)
	if err != nil {
		return fmt.Errorf("ledger: complete %s: %w", c.Claim.Key, err)
	}
	record, err := recordOf(&next, max(c.Body, len(found.Body)))
	if err != nil {
		return err
	}
	if err := tx.Put(ctx, *record); err != nil {
		return fmt.Errorf("ledger: complete %s: %w", c.Claim.Key, err)
	}
	return nil
}

// Completion is the end of an attempt that its handler writes itself, in the same
// transaction as its effect: both are committed, or neither.
type Completion struct {
	Claim Claim
	Body  int // the most bytes of a record's body
	Read  Read
	Now   time.Time
	Nonce Nonce // fresh
}

// Apply returns the row that replaces the one that stands. It goes by the fence and
// not by the nonce, because renewals go on meanwhile; [ErrNotHeld]: another has the
// lease, or this attempt has ended already.
func (c *Completion) Apply(row *Row) (Row, error) {
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
