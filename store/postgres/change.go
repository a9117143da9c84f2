package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/store"
)

// A change is sent again after a deadlock, or if the record that refused it has changed since.
const maxAttempts = 5

// Swap sends the batch in one round trip and one transaction. If changes are refused, it needs more round
// trips.
func (s *Store) Swap(ctx context.Context, changes []store.Change) ([]store.Outcome, error) {
	out := make([]store.Outcome, len(changes))
	open := make([]int, 0, len(changes))
	for i := range changes {
		if out[i].Err = traits.Check(&changes[i]); out[i].Err == nil {
			open = append(open, i)
		}
	}
	for n := 0; n < maxAttempts && len(open) > 0; n++ {
		err := s.send(ctx, "swap", changes, open, out, s.swap)
		if err != nil && n == 0 {
			return nil, err
		}
		if err == nil {
			open, err = s.refuse(ctx, changes, refusedOf(open, out), out)
		}
		if err != nil {
			return nil, readFailed(store.ErrUnclear, err) // other changes may have landed
		}
	}
	return out, nil
}

// Apply commits in a second round trip.
func (s *Store) Apply(ctx context.Context, changes []store.Change) ([]store.Outcome, error) {
	if err := traits.CheckAll(changes); err != nil {
		return nil, err
	}
	out := make([]store.Outcome, len(changes))
	all := make([]int, len(changes))
	for i := range all {
		all[i] = i
	}
	for n := 0; n < maxAttempts && len(all) > 0; n++ {
		if err := s.send(ctx, "apply", changes, all, out, s.apply); err != nil {
			return nil, err
		}
		refused := refusedOf(all, out)
		if len(refused) == 0 {
			break
		}
		clear(out) // rolled back
		again, err := s.refuse(ctx, changes, refused, out)
		if err != nil {
			return nil, readFailed(store.ErrThrottled, err)
		}
		if len(again) < len(refused) {
			for _, i := range again {
				out[i] = store.Outcome{}
			}
			break
		}
	}
	return out, nil
}

func refusedOf(sent []int, out []store.Outcome) (refused []int) {
	for _, i := range sent {
		if !out[i].Applied {
			refused = append(refused, i)
		}
	}
	return refused
}

func (s *Store) send(ctx context.Context, what string, changes []store.Change, chosen []int, out []store.Outcome,
	transact func(ctx context.Context, q *pgx.Batch, landed func() bool) error,
) (err error) {
	// A different order in another transaction would cause deadlocks.
	slices.SortFunc(chosen, func(i, j int) int { return changes[i].Key.Compare(changes[j].Key) })
	for range maxAttempts {
		for _, i := range chosen {
			out[i] = store.Outcome{}
		}
		err = s.call(ctx, what, func(ctx context.Context) error {
			return transact(ctx, s.queue(changes, chosen, out), func() bool { return len(refusedOf(chosen, out)) == 0 })
		})
		if codeOf(err) != deadlock {
			break
		}
	}
	return err
}

func (s *Store) swap(ctx context.Context, q *pgx.Batch, _ func() bool) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return unsent{err}
	}
	defer conn.Release() // closes the connection if its transaction is still open
	q.Queue("COMMIT")
	return conn.SendBatch(ctx, q).Close()
}

func (s *Store) apply(ctx context.Context, q *pgx.Batch, landed func() bool) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return unsent{err}
	}
	defer conn.Release()
	if err := conn.SendBatch(ctx, q).Close(); err != nil {
		return unsent{err} // COMMIT was not sent
	}
	if !landed() {
		_, _ = conn.Exec(ctx, "ROLLBACK") // if it fails, the connection is closed
		return nil
	}
	_, err = conn.Exec(ctx, "COMMIT")
	return err
}

func (s *Store) queue(changes []store.Change, chosen []int, out []store.Outcome) *pgx.Batch {
	var insert, update, remove changeColumns
	for _, i := range chosen {
		c := &changes[i]
		switch {
		case c.Next == nil:
			remove.add(c, i)
		case c.Expect.IsZero():
			insert.add(c, i)
		default:
			update.add(c, i)
		}
	}
	q := &pgx.Batch{}
	q.Queue(beginSQL)
	q.Queue(settingsSQL)
	if len(insert.which) > 0 {
		q.Queue(s.sql.insert, insert.spaces, insert.names, insert.nonces, insert.dues, insert.bodies).Query(insert.byKey(out))
	}
	if len(update.which) > 0 {
		q.Queue(s.sql.update, update.spaces, update.names, update.nonces, update.dues, update.bodies, update.expects).Query(update.byPlace(out))
	}
	if len(remove.which) > 0 {
		q.Queue(s.sql.remove, remove.spaces, remove.names, remove.expects).Query(remove.byPlace(out))
	}
	return q
}

// refuse sets the records that refused changes, and returns the changes that they no longer refuse.
func (s *Store) refuse(ctx context.Context, changes []store.Change, refused []int, out []store.Outcome) (again []int, err error) {
	if len(refused) == 0 {
		return nil, nil
	}
	keys := make([]store.Key, len(refused))
	for n, i := range refused {
		keys[n] = changes[i].Key
	}
	found, err := s.Load(ctx, keys)
	if err != nil {
		return nil, err
	}
	current := make(map[store.Key]*store.Record, len(found))
	for i := range found {
		current[found[i].Key] = &found[i]
	}
	for _, i := range refused {
		c, now := &changes[i], current[changes[i].Key]
		out[i].Refused, out[i].Current = true, now
		if now == nil && c.Expect.IsZero() && c.Next != nil || now != nil && now.Nonce == c.Expect {
			again = append(again, i)
		}
	}
	return again, nil
}
