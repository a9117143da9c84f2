package worker

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/ledger"
)

func (x *Attempt) completion() (*ledger.Completion, error) {
	if !x.Pipeline.Transactional {
		return nil, Permanent(fmt.Errorf("pipeline %s is not transactional: declare it transactional to complete tasks in its handler", x.Pipeline.Name))
	}
	x.completionAsked = true
	c := &ledger.Completion{Body: x.Ledger.Traits().Body, Claim: x.Claim, Read: x.ending.Read, Now: x.Now().UTC().Truncate(time.Millisecond)}
	sum := sha256.Sum256([]byte(x.Nonce()))
	copy(c.Nonce[:], sum[:])
	return c, nil
}

var errUncommitted = errors.New("the handler of a transactional pipeline returned nil without completing its task: call ledger.Complete in the transaction, then commit")

// err is the handler's error, but the row decides. If the row cannot be loaded, or the commit may
// still land, the attempt fails. If the commit has landed nevertheless, the row refuses to record
// the failure.
func (x *Attempt) checkCommit(ctx context.Context, err error) error {
	if !x.completionAsked {
		if err == nil {
			err = Permanent(errUncommitted)
		}
		return err
	}
	if cause := context.Cause(ctx); cause != nil {
		return errors.Join(err, cause)
	}
	rows, failed := x.Ledger.Load(ctx, []ledger.RowKey{x.Claim.Key})
	switch {
	case failed != nil:
		return errors.Join(err, Outage(fmt.Errorf("check whether the transaction of %s committed: %w", x.object(), failed)))
	case len(rows) == 1 && rows[0].CommittedBy(&x.Claim):
		x.finalRow = &rows[0]
		return nil
	case err == nil:
		return Permanent(errUncommitted)
	}
	return err
}
