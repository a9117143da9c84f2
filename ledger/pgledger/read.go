package pgledger

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/ledger"
)

// keys are the parts of many keys, by column.
type keys struct{ pipelines, buckets, names, versions [][]byte }

func (k *keys) add(key ledger.RowKey) {
	k.pipelines = append(k.pipelines, []byte(key.Pipeline))
	k.buckets = append(k.buckets, []byte(key.Bucket))
	k.names = append(k.names, []byte(key.Key))
	k.versions = append(k.versions, []byte(key.VersionID))
}

func (k *keys) args() []any { return []any{k.pipelines, k.buckets, k.names, k.versions} }

// one is the parameters of one key.
func one(k ledger.RowKey) []any {
	return []any{[]byte(k.Pipeline), []byte(k.Bucket), []byte(k.Key), []byte(k.VersionID)}
}

// Load reads all rows in one statement.
func (s *Store) Load(ctx context.Context, names []ledger.RowKey) ([]ledger.Row, error) {
	var k keys
	for _, name := range names {
		k.add(name)
	}
	return s.query(ctx, "load", s.sql.load, k.args()...)
}

// shares is how many runs of rows the oldest due ones are shared out in. Eight
// workers that ask at once then seldom meet.
const shares = 100

// Due reads the index of rows that are due some time.
func (s *Store) Due(ctx context.Context, pipeline string, before time.Time, limit int) ([]ledger.Row, error) {
	rows, err := s.query(ctx, "due", s.sql.due, []byte(pipeline), timestamp(before), limit, limit*shares)
	// The index knows microseconds; a row may know more, and one that cannot be
	// read is told of.
	rows = slices.DeleteFunc(rows, func(r ledger.Row) bool { return r.Due().After(before) })
	return rows, err
}

// page is how many rows of a scan are read at once. While the caller looks at them
// no connection is held.
const page = 256

// Scan yields the rows of the range in key order. The loop's body may call the
// store.
func (s *Store) Scan(ctx context.Context, r ledger.Range) iter.Seq2[ledger.Row, error] {
	return func(yield func(ledger.Row, error) bool) {
		from, to := r.Bounds()
		for {
			sql, args := s.sql.scan, append(one(from), page)
			if to != nil {
				sql, args = s.sql.scanTo, append(args, one(*to)...)
			}
			rows, err := s.query(ctx, "scan", sql, args...)
			if err != nil {
				yield(ledger.Row{}, err)
				return
			}
			for _, row := range rows {
				if r.Match(row.RowKey) && !yield(row, nil) {
					return
				}
			}
			if len(rows) < page {
				return
			}
			from = rows[len(rows)-1].Next()
		}
	}
}

// query runs a statement that selects our columns.
func (s *Store) query(ctx context.Context, what, sql string, args ...any) (found []ledger.Row, err error) {
	err = s.call(ctx, what, func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, sql, args...)
		if err == nil {
			found, err = pgx.CollectRows(rows, decode)
		}
		return err
	})
	return found, err
}

// decode reads our columns.
func decode(rows pgx.CollectableRow) (ledger.Row, error) {
	var pipeline, bucket, key, version, body []byte
	var nonce [16]byte
	if err := rows.Scan(&pipeline, &bucket, &key, &version, &nonce, &body); err != nil {
		return ledger.Row{}, err
	}
	return ledger.Decode(ledger.RowKey{
		Pipeline: string(pipeline), Bucket: string(bucket), Key: string(key), VersionID: string(version),
	}, nonce, body), nil
}
