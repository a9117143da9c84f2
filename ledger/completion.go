package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/store"
)

// ErrNotHeld is returned when an attempt has lost its lease and must not commit.
var ErrNotHeld = errors.New("another worker has the lease: roll back")

// Task is an attempt that can be completed in a transaction.
type Task interface {
	Completion() (*Completion, error)
}

// Complete completes a task in the handler's transaction, which must be in the ledger's database.
// The handler's writes and Have are committed together or not at all.
//
// Call it last, then commit. The lease cannot be renewed until the transaction ends. After an
// error, roll back and return the error, such as [ErrNotHeld]. After the commit, the handler's
// return value does not matter.
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

// Completion is the end of an attempt, for a handler that commits it with its effect.
type Completion struct {
	Claim Claim
	Body  int // bytes of a record's body
	Read  Read
	Now   time.Time
	Nonce Nonce // fresh
}

// Apply returns the row that replaces the current one. It compares the fence and not the nonce,
// because renewals continue. It returns [ErrNotHeld] if the row has no lease of this attempt.
func (c *Completion) Apply(row *Row) (Row, error) {
	if row.Unreadable != nil {
		return Row{}, row.Unreadable
	}
	next, ok := row.Complete(&c.Claim, &Ending{Read: c.Read}, true, &Policy{}, c.Now) // only a doubtful ending needs a policy
	if !ok {
		return Row{}, ErrNotHeld
	}
	next.Nonce = c.Nonce
	return next, nil
}

// CommittedBy reports whether the attempt of a has completed and no other claim followed.
func (r *Row) CommittedBy(a *Claim) bool {
	return !r.Held() && !r.Dead && r.Lease.Fence == a.Fence && r.Have.Compare(a.Want) >= 0
}
