package postgres

import (
	"context"
	"iter"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlhq/pawl/store"
)

// Load reads all records in one statement.
func (s *Store) Load(ctx context.Context, keys []store.Key) ([]store.Record, error) {
	spaces, names := make([][]byte, len(keys)), make([][]byte, len(keys))
	for i, k := range keys {
		spaces[i], names[i] = []byte(k.Space), []byte(k.Name)
	}
	return s.query(ctx, "load", s.sql.load, spaces, names)
}

// Due reads the index of records that are due some time.
func (s *Store) Due(ctx context.Context, r store.DueRange) ([]store.Record, error) {
	after := timestamp(r.After.Due)
	if !after.Valid {
		after = pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}
	}
	return s.query(ctx, "due", s.sql.due, []byte(r.Space), timestamp(r.Before), after, []byte(r.After.Name), r.Limit, r.Skip)
}

// page is how many records of a scan are read at once. No connection is held while the
// caller works on them.
const page = 256

// Scan implements [store.Store].
func (s *Store) Scan(ctx context.Context, r store.Range) iter.Seq2[store.Record, error] {
	return store.ScanPages(r, page, func(r store.Range) ([]store.Record, error) {
		sql, args := s.sql.scan, []any{[]byte(r.Space), []byte(r.After), r.Limit}
		if r.Before != "" {
			sql, args = sql+" AND name < $4", append(args, []byte(r.Before))
		}
		order := " ORDER BY name LIMIT $3"
		if r.Newest {
			order = " ORDER BY name DESC LIMIT $3"
		}
		return s.query(ctx, "scan", sql+order, args...)
	})
}

// query runs a statement that selects the columns of records.
func (s *Store) query(ctx context.Context, what, sql string, args ...any) (found []store.Record, err error) {
	err = s.call(ctx, what, func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, sql, args...)
		if err == nil {
			found, err = pgx.CollectRows(rows, record)
		}
		return err
	})
	return found, err
}
