package pgledger

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/ledger"
)

// Task is an attempt that can be completed in a transaction: a pawl.Task of a
// pipeline that is declared transactional.
type Task interface {
	Completion() (*ledger.Completion, error)
}

// Complete completes a task in the transaction of its handler, which is one of the
// ledger's own database: what the handler has written and Have are committed together,
// or neither is. So the effect happens exactly once.
//
// Call it last, and commit: it locks the row, and the lease cannot be renewed before
// the transaction ends. The server undoes a transaction that then stands still for five
// seconds. The transaction must be READ COMMITTED, which is the default,
// because the row changes while the handler works. After an error, roll back and return
// it; [ledger.ErrNotHeld] says that another worker has the object by now.
//
// What a handler returns after the commit does not matter: the row tells whether it
// was committed, also where the answer was lost.
func Complete(ctx context.Context, tx pgx.Tx, t Task) error {
	c, err := t.Completion()
	if err != nil {
		return err
	}
	s, ok := c.Store.(*Store)
	if !ok {
		return fmt.Errorf("pgledger: complete %s: the pipeline's ledger is a %T, and not one in PostgreSQL", c.Claim.Key, c.Store)
	}
	rows, err := tx.Query(ctx, s.sql.lock, one(c.Claim.Key)...)
	if err != nil {
		return s.explain(ctx, "complete", err)
	}
	found, err := pgx.CollectRows(rows, decode)
	switch {
	case err != nil:
		return s.explain(ctx, "complete", err)
	case len(found) == 0:
		return fmt.Errorf("pgledger: complete %s: the row is gone, or the transaction is one of another database: %w", c.Claim.Key, ledger.ErrNotHeld)
	}
	next, err := c.Over(&found[0])
	if err != nil {
		return fmt.Errorf("pgledger: complete %s: %w", c.Claim.Key, err)
	}
	body, err := ledger.Encode(&next)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, s.sql.put, append(one(next.RowKey), uuid(next.Nonce), timestamp(next.Due()), string(body))...); err != nil {
		return s.explain(ctx, "complete", err)
	}
	return nil
}
