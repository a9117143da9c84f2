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

// Complete completes a task in the transaction of its handler, in the ledger's own
// database. The handler's writes and Have are committed together, or neither is. So the
// effect happens exactly once.
//
// Call it last, and commit: it locks the row, and the lease cannot be renewed before
// the transaction ends. The server rolls back a transaction that is then idle for five
// seconds. The transaction must be READ COMMITTED, because the row changes while the
// handler works: begin it with pgx.TxOptions, because the database's default may be
// another. After an error, roll back and return the error. [ledger.ErrNotHeld] is
// returned when another worker has the object.
//
// What a handler returns after the commit does not matter: the row shows whether the
// commit landed, even if its answer was lost.
func Complete(ctx context.Context, tx pgx.Tx, t Task) error {
	c, err := t.Completion()
	if err != nil {
		return err
	}
	s, ok := c.Store.(*Store)
	if !ok {
		return fmt.Errorf("pgledger: complete %s: the pipeline's ledger is a %T, not one in PostgreSQL", c.Claim.Key, c.Store)
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
		return fmt.Errorf("pgledger: complete %s: the row is missing, or the transaction belongs to another database: %w", c.Claim.Key, ledger.ErrNotHeld)
	}
	next, err := c.Over(&found[0])
	if err != nil {
		return fmt.Errorf("pgledger: complete %s: %w", c.Claim.Key, err)
	}
	body, err := ledger.Encode(&next)
	if err != nil {
		return err
	}
	put, err := tx.Exec(ctx, s.sql.put, append(one(next.RowKey), uuid(next.Nonce), timestamp(next.Due()), string(body), uuid(found[0].Nonce))...)
	switch {
	case err != nil:
		return s.explain(ctx, "complete", err)
	case put.RowsAffected() != 1:
		return fmt.Errorf("pgledger: complete %s: the row changed although the transaction locked it: a pooler must keep each transaction on one connection", c.Claim.Key)
	}
	return nil
}
