package postgres

import (
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlhq/pawl/store"
)

type changeColumns struct {
	spaces, names   [][]byte
	nonces, expects []pgtype.UUID
	dues            []pgtype.Timestamptz
	bodies          []string
	which           []int
}

func (b *changeColumns) add(c *store.Change, i int) {
	b.spaces, b.names = append(b.spaces, []byte(c.Key.Space)), append(b.names, []byte(c.Key.Name))
	b.which = append(b.which, i)
	b.expects = append(b.expects, uuid(c.Expect))
	if r := c.Next; r != nil {
		b.nonces, b.dues, b.bodies = append(b.nonces, uuid(r.Nonce)), append(b.dues, timestamp(r.Due)), append(b.bodies, r.Body)
	}
}

// The statement returns places from 1.
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

// An INSERT returns no places, and records of one Apply may share a nonce.
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

func timestamp(t time.Time) pgtype.Timestamptz {
	return pgtype.Timestamptz{Time: time.UnixMilli(t.UnixMilli()), Valid: !t.IsZero()}
}

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
