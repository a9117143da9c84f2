package pgledger

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlhq/pawl/internal/rowjson"
	"github.com/pawlhq/pawl/ledger"
)

// Swap sends the batch in one round trip and one transaction, with one statement
// for each kind of change there is. Only refused changes cost another.
//
// A change that was refused by a row that is gone, when it is looked for, is sent
// again.
func (s *Store) Swap(ctx context.Context, changes []ledger.Change) ([]ledger.Outcome, error) {
	bodies, err := rowjson.Encode(changes)
	if err != nil {
		return nil, err
	}
	out := make([]ledger.Outcome, len(changes))
	open := make([]int, len(changes))
	for i := range open {
		open[i] = i
	}
	// In one order, or two batches would wait for each other's rows.
	slices.SortFunc(open, func(i, j int) int { return changes[i].Key.Compare(changes[j].Key) })
	for len(open) > 0 {
		err := s.call(ctx, "swap", func(ctx context.Context) error { return s.send(ctx, changes, bodies, open, out) })
		if err != nil {
			return nil, err
		}
		open = slices.DeleteFunc(open, func(i int) bool { return out[i].Applied })
		if open, err = s.refusals(ctx, changes, open, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// batch is the changes of one kind, by column.
type batch struct {
	keys
	nonces, expects []pgtype.UUID
	dues            []pgtype.Timestamptz
	bodies          []string
	which           []int
}

// send makes the open changes, and marks those that were applied.
func (s *Store) send(ctx context.Context, changes []ledger.Change, bodies []string, open []int, out []ledger.Outcome) error {
	var insert, update, remove batch
	for _, i := range open {
		c := &changes[i]
		b := &update
		switch {
		case c.Row == nil:
			b = &remove
		case c.Expect.IsZero():
			b = &insert
		}
		b.add(c, bodies[i], i)
	}
	q := &pgx.Batch{}
	q.Queue(settingsSQL)
	if len(insert.which) > 0 {
		q.Queue(s.sql.insert, append(insert.args(), insert.nonces, insert.dues, insert.bodies)...).Query(insert.byNonce(out))
	}
	if len(update.which) > 0 {
		q.Queue(s.sql.update, append(update.args(), update.nonces, update.dues, update.bodies, update.expects)...).Query(update.byPlace(out))
	}
	if len(remove.which) > 0 {
		q.Queue(s.sql.remove, append(remove.args(), remove.expects)...).Query(remove.byPlace(out))
	}
	return s.pool.SendBatch(ctx, q).Close()
}

func (b *batch) add(c *ledger.Change, body string, i int) {
	b.keys.add(c.Key)
	b.which = append(b.which, i)
	b.expects = append(b.expects, uuid(c.Expect))
	if c.Row != nil {
		b.nonces = append(b.nonces, uuid(c.Row.Nonce))
		b.dues = append(b.dues, timestamp(c.Row.Due()))
		b.bodies = append(b.bodies, body)
	}
}

// byPlace takes the places, from 1, of the changes that a statement made.
func (b *batch) byPlace(out []ledger.Outcome) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var place int
		_, err := pgx.ForEachRow(rows, []any{&place}, func() error {
			out[b.which[place-1]].Applied = true
			return nil
		})
		return err
	}
}

// byNonce takes the nonces of the new rows: what an INSERT returns are columns of the
// table.
func (b *batch) byNonce(out []ledger.Outcome) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		made := make(map[pgtype.UUID]int, len(b.which))
		for i, n := range b.nonces {
			made[n] = b.which[i]
		}
		var n pgtype.UUID
		_, err := pgx.ForEachRow(rows, []any{&n}, func() error {
			out[made[n]].Applied = true
			return nil
		})
		return err
	}
}

// refusals fills in the rows that refused changes, and returns the changes that
// they would not refuse any more.
func (s *Store) refusals(ctx context.Context, changes []ledger.Change, refused []int, out []ledger.Outcome) (again []int, err error) {
	if len(refused) == 0 {
		return nil, nil
	}
	names := make([]ledger.RowKey, len(refused))
	for i, c := range refused {
		names[i] = changes[c].Key
	}
	rows, err := s.Load(ctx, names)
	if err != nil {
		return nil, err
	}
	current := make(map[ledger.RowKey]*ledger.Row, len(rows))
	for i := range rows {
		current[rows[i].RowKey] = &rows[i]
	}
	for _, i := range refused {
		now := current[changes[i].Key]
		if now == nil && changes[i].Expect.IsZero() && changes[i].Row != nil || now != nil && now.Nonce == changes[i].Expect {
			again = append(again, i)
			continue
		}
		out[i].Current = now
	}
	return again, nil
}

func uuid(n ledger.Nonce) pgtype.UUID { return pgtype.UUID{Bytes: n, Valid: true} }

// timestamp is a time as PostgreSQL keeps it, in microseconds; the zero time is
// none.
func timestamp(t time.Time) pgtype.Timestamptz {
	return pgtype.Timestamptz{Time: t, Valid: !t.IsZero()}
}
