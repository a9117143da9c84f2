package postgres

import (
	"context"
	"iter"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlhq/pawl/store"
)

// Load implements [store.Store].
func (s *Store) Load(ctx context.Context, keys []store.Key) (found []store.Record, err error) {
	spaces, names := make([][]byte, len(keys)), make([][]byte, len(keys))
	for i, k := range keys {
		spaces[i], names[i] = []byte(k.Space), []byte(k.Name)
	}
	err = s.call(ctx, "load", func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, s.sql.load, spaces, names)
		if err == nil {
			found, err = pgx.CollectRows(rows, record)
		}
		return err
	})
	return found, err
}

// Due implements [store.Store].
func (s *Store) Due(ctx context.Context, r store.DueRange) ([]store.Record, error) {
	return s.inOrder(ctx, "due", s.sql.due, dueArgs(r))
}

func dueArgs(r store.DueRange) []any {
	after := timestamp(r.After.Due)
	if !after.Valid {
		after = pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}
	}
	return []any{[]byte(r.Space), timestamp(r.Before), after, []byte(r.After.Name), r.Limit, r.Skip}
}

// A scan holds no connection while the caller handles a page.
const page = 256

// Scan implements [store.Store].
func (s *Store) Scan(ctx context.Context, r store.Range) iter.Seq2[store.Record, error] {
	return store.ScanPages(r, page, func(r store.Range) ([]store.Record, error) {
		sql, args := s.scan(r)
		return s.inOrder(ctx, "scan", sql, args)
	})
}

func (s *Store) scan(r store.Range) (sql string, args []any) {
	sql, args = s.sql.scan, []any{[]byte(r.Space), []byte(r.After), r.Limit}
	if r.Before != "" {
		sql, args = sql+" AND name < $4", append(args, []byte(r.Before))
	}
	if r.Newest {
		return sql + " ORDER BY name DESC LIMIT $3", args
	}
	return sql + " ORDER BY name LIMIT $3", args
}

func (s *Store) inOrder(ctx context.Context, what, sql string, args []any) (found []store.Record, err error) {
	err = s.call(ctx, what, func(ctx context.Context) error {
		q := &pgx.Batch{}
		q.Queue(orderSQL)
		q.Queue(sql, args...).Query(func(rows pgx.Rows) (err error) {
			found, err = pgx.CollectRows(rows, record)
			return err
		})
		return s.pool.SendBatch(ctx, q).Close()
	})
	return found, err
}
