package postgres

import (
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlhq/pawl/store"
)

// changeColumns are the changes of one kind, by column.
type changeColumns struct {
	spaces, names   [][]byte
	nonces, expects []pgtype.UUID
	dues            []pgtype.Timestamptz
	bodies          []string
	which           []int // index of the change
}

func (b *changeColumns) add(c *store.Change, i int) {
	b.spaces, b.names = append(b.spaces, []byte(c.Key.Space)), append(b.names, []byte(c.Key.Name))
	b.which = append(b.which, i)
	b.expects = append(b.expects, uuid(c.Expect))
	if r := c.Next; r != nil {
		b.nonces, b.dues, b.bodies = append(b.nonces, uuid(r.Nonce)), append(b.dues, timestamp(r.Due)), append(b.bodies, r.Body)
	}
}

// byPlace reads the places, from 1, of the changes that a statement applied.
func (b *changeColumns) byPlace(out []store.Outcome) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var place int
		_, err := pgx.ForEachRow(rows, []any{&place}, func() error {
			out[b.which[place-1]].Applied = true
			return nil
		})
		return err
	}
}

// byKey reads the keys of inserted records, because an INSERT returns only columns of
// its table. Records of one Apply may share a nonce.
func (b *changeColumns) byKey(out []store.Outcome) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		index := make(map[store.Key]int, len(b.which))
		for n, i := range b.which {
			index[store.Key{Space: string(b.spaces[n]), Name: string(b.names[n])}] = i
		}
		var space, name pgtype.DriverBytes
		_, err := pgx.ForEachRow(rows, []any{&space, &name}, func() error {
			out[index[store.Key{Space: string(space), Name: string(name)}]].Applied = true
			return nil
		})
		return err
	}
}

func uuid(n store.Nonce) pgtype.UUID { return pgtype.UUID{Bytes: n, Valid: true} }

// timestamp is a time in whole milliseconds; the zero time is NULL.
func timestamp(t time.Time) pgtype.Timestamptz {
	return pgtype.Timestamptz{Time: time.UnixMilli(t.UnixMilli()), Valid: !t.IsZero()}
}

// record reads the columns of a record.
func record(rows pgx.CollectableRow) (r store.Record, err error) {
	var space, name pgtype.DriverBytes
	var due pgtype.Timestamptz
	if err := rows.Scan(&space, &name, (*[16]byte)(&r.Nonce), &due, &r.Body); err != nil {
		return r, err
	}
	r.Key = store.Key{Space: string(space), Name: string(name)}
	if due.Valid {
		r.Due = due.Time.UTC()
	}
	return r, nil
}
