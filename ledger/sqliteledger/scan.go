package sqliteledger

import (
	"context"
	"iter"

	"zombiezen.com/go/sqlite"

	"github.com/pawlhq/pawl/ledger"
)

// page is how many rows of a scan are read at once. Between pages, and while
// the caller looks at the rows, no connection is held: a slow caller keeps
// neither others from reading nor the -wal file from being folded in.
const page = 256

// Scan yields the rows of the range in key order. The loop's body may call the
// store.
func (s *Store) Scan(ctx context.Context, r ledger.Range) iter.Seq2[ledger.Row, error] {
	return func(yield func(ledger.Row, error) bool) {
		from, to := r.Bounds()
		for {
			rows, err := s.page(ctx, from, to)
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

// page reads the rows from one key, inclusive, to another, exclusive.
func (s *Store) page(ctx context.Context, from ledger.RowKey, to *ledger.RowKey) (rows []ledger.Row, err error) {
	err = s.read(ctx, "scan", func(conn *sqlite.Conn) error {
		sql := scanSQL
		if to != nil {
			sql = scanToSQL
		}
		stmt, err := conn.Prepare(sql)
		if err != nil {
			return err
		}
		bindKey(stmt, 1, from)
		stmt.BindInt64(5, page)
		if to != nil {
			bindKey(stmt, 6, *to)
		}
		rows, err = collect(stmt)
		return err
	})
	return rows, err
}
