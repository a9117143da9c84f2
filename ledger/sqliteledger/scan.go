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
		from, to := bounds(r)
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
			from = after(rows[len(rows)-1].RowKey)
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

// bounds returns the first key that a range may hold, and the first after it
// that it may not; nil: there is no such key.
func bounds(r ledger.Range) (from ledger.RowKey, to *ledger.RowKey) {
	from = ledger.RowKey{Pipeline: r.Pipeline, Bucket: r.Bucket, Key: r.Prefix}
	if r.After != (ledger.RowKey{}) && r.After.Compare(from) >= 0 {
		from = after(r.After)
	}
	switch end, ok := beyond(r.Prefix); {
	case r.Pipeline == "":
		return from, nil
	case r.Bucket == "":
		return from, &ledger.RowKey{Pipeline: r.Pipeline + "\x00"}
	case !ok:
		return from, &ledger.RowKey{Pipeline: r.Pipeline, Bucket: r.Bucket + "\x00"}
	default:
		return from, &ledger.RowKey{Pipeline: r.Pipeline, Bucket: r.Bucket, Key: end}
	}
}

// after returns the key that directly follows k.
func after(k ledger.RowKey) ledger.RowKey {
	k.VersionID += "\x00"
	return k
}

// beyond returns the first string after all that begin with prefix. There is
// none where the prefix has no byte below 0xff.
func beyond(prefix string) (string, bool) {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			return prefix[:i] + string([]byte{prefix[i] + 1}), true
		}
	}
	return "", false
}
