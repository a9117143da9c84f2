package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/store"
)

type transaction struct {
	s      *Store
	tx     pgx.Tx
	locked map[store.Key]store.Nonce
}

// In returns a [store.Tx] for the caller's own transaction in the same database. The transaction
// must be READ COMMITTED, because a record may change after it began.
//
// Lock a record late and commit soon: other changes of the record wait. The server rolls back a
// transaction that is idle for five seconds after a Lock. Roll back after an error.
func (s *Store) In(tx pgx.Tx) store.Tx { return &transaction{s, tx, map[store.Key]store.Nonce{}} }

func (t *transaction) Lock(ctx context.Context, k store.Key) (*store.Record, error) {
	var isolation string
	if err := t.tx.QueryRow(ctx, isolationSQL).Scan(&isolation); err != nil {
		return nil, t.s.explain(ctx, "lock", err)
	}
	if isolation != "read committed" {
		return nil, fmt.Errorf("lock %q: the transaction is %s: begin it with pgx.TxOptions{IsoLevel: pgx.ReadCommitted}", k.Name, isolation)
	}
	rows, err := t.tx.Query(ctx, t.s.sql.lock, []byte(k.Space), []byte(k.Name))
	if err != nil {
		return nil, t.s.explain(ctx, "lock", err)
	}
	found, err := pgx.CollectRows(rows, record)
	if err != nil || len(found) == 0 {
		return nil, t.s.explain(ctx, "lock", err)
	}
	t.locked[k] = found[0].Nonce
	return &found[0], nil
}

func (t *transaction) Put(ctx context.Context, r store.Record) error {
	was, locked := t.locked[r.Key]
	if !locked {
		return fmt.Errorf("%w: %q was not locked in this transaction", store.ErrRejected, r.Name)
	}
	if err := traits.Check(&store.Change{Key: r.Key, Expect: was, Next: &r}); err != nil {
		return err
	}
	put, err := t.tx.Exec(ctx, t.s.sql.put, []byte(r.Space), []byte(r.Name), uuid(r.Nonce), timestamp(r.Due), r.Body, uuid(was))
	switch {
	case err != nil:
		return t.s.explain(ctx, "put", err)
	case put.RowsAffected() != 1:
		return fmt.Errorf("put %q: the record changed although the transaction locked it: a pooler must keep each transaction on one connection", r.Name)
	}
	t.locked[r.Key] = r.Nonce
	return nil
}
