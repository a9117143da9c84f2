package ledgertest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/pawlhq/pawl/ledger"
)

var raceTests = []test{
	{name: "Increments", run: testRaceIncrements, unless: partial},
	{name: "OneInserter", run: testRaceInsert},
	{name: "Comings", run: testRaceComings, unless: partial},
	{name: "Batches", run: testRaceBatches, unless: partial},
}

// partial: a change that landed without an answer, and was written over or removed
// since, is told as refused, or as another's, so that nobody can count.
func partial(t *ledger.Traits) bool { return t.Partial }

const racers = 8

// race runs one function per racer, spread over two handles. Each has a maker
// of its own.
func (f *fixture) race(run func(i int, s ledger.Store, m *maker) error) {
	f.Helper()
	handles := f.handles()
	var wg sync.WaitGroup
	errs := make([]error, racers)
	for i := range racers {
		m := newMaker(fmt.Sprintf("%d of %s", i, f.Name()))
		wg.Go(func() { errs[i] = run(i, handles[i%2], &m) })
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			f.Errorf("racer %d: %v", i, err)
		}
	}
}

// modify swaps until edit's change of the row is applied. edit gets the row as
// it stands, nil for none, and returns the change.
func modify(ctx context.Context, s ledger.Store, k ledger.RowKey, edit func(*ledger.Row) ledger.Change) error {
	rows, err := s.Load(ctx, []ledger.RowKey{k})
	if err != nil {
		return err
	}
	var now *ledger.Row
	if len(rows) > 0 {
		now = &rows[0]
	}
	for {
		out, err := s.Swap(ctx, []ledger.Change{edit(now)})
		if err != nil {
			return err
		}
		if out[0].Applied {
			return nil
		}
		now = out[0].Current
	}
}

// No increment gets lost between workers that hold the same row.
func testRaceIncrements(f *fixture) {
	const each = 30
	keys := []ledger.RowKey{key("a"), key("b"), key("c")}
	f.race(func(i int, s ledger.Store, m *maker) error {
		for n := range each {
			err := modify(f.ctx, s, keys[(i+n)%len(keys)], func(r *ledger.Row) ledger.Change {
				if r == nil {
					return insert(m.row(keys[(i+n)%len(keys)]))
				}
				return update(r, m.next(r))
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	var sum uint64
	for _, k := range keys {
		sum += f.load(k).Want.Generation
	}
	if sum != racers*each {
		f.Fatalf("%d increments are left of %d", sum, racers*each)
	}
}

// Of those who find no row, one makes it, and all others see that one.
func testRaceInsert(f *fixture) {
	const rounds = 10
	var mu sync.Mutex
	winners := map[ledger.RowKey][]ledger.Nonce{}
	seen := map[ledger.RowKey]map[ledger.Nonce]bool{}
	f.race(func(_ int, s ledger.Store, m *maker) error {
		for n := range rounds {
			r := m.row(key(fmt.Sprint(n)))
			out, err := s.Swap(f.ctx, []ledger.Change{insert(r)})
			if err != nil {
				return err
			}
			mu.Lock()
			if seen[r.RowKey] == nil {
				seen[r.RowKey] = map[ledger.Nonce]bool{}
			}
			if out[0].Applied {
				winners[r.RowKey] = append(winners[r.RowKey], r.Nonce)
			} else {
				seen[r.RowKey][out[0].Current.Nonce] = true
			}
			mu.Unlock()
		}
		return nil
	})
	for k, w := range winners {
		if len(w) != 1 || len(seen[k]) != 1 || !seen[k][w[0]] || f.load(k).Nonce != w[0] {
			f.Errorf("%s: winners %x, losers saw %v, stored %x", k, w, seen[k], f.load(k).Nonce)
		}
	}
	if len(winners) != rounds {
		f.Errorf("%d keys have a winner, want %d", len(winners), rounds)
	}
}

// Rows that come and go are made and removed in turn.
func testRaceComings(f *fixture) {
	const each = 20
	var made, removed [racers]int
	f.race(func(i int, s ledger.Store, m *maker) error {
		for range each {
			delta := &made[i]
			err := modify(f.ctx, s, key("k"), func(r *ledger.Row) ledger.Change {
				if r == nil {
					delta = &made[i]
					return insert(m.row(key("k")))
				}
				delta = &removed[i]
				return remove(r)
			})
			if err != nil {
				return err
			}
			*delta++
		}
		return nil
	})
	left := 0
	for i := range racers {
		left += made[i] - removed[i]
	}
	if f.load(key("k")) != nil {
		left--
	}
	if left != 0 {
		f.Fatalf("made %v, removed %v: %d rows unaccounted for", made, removed, left)
	}
}

// Batches that share keys in any order neither block each other for good nor
// tear.
func testRaceBatches(f *fixture) {
	const n, each = 20, 8
	keys := make([]ledger.RowKey, n)
	for i := range keys {
		keys[i] = key(fmt.Sprint(i))
		f.put(f.row(keys[i]))
	}
	var applied [racers]uint64
	f.race(func(i int, s ledger.Store, m *maker) error {
		order := rand.New(m.random)
		for range each {
			rows, err := s.Load(f.ctx, keys)
			if err != nil {
				return err
			}
			order.Shuffle(len(rows), func(a, b int) { rows[a], rows[b] = rows[b], rows[a] })
			changes := make([]ledger.Change, len(rows))
			for j := range rows {
				changes[j] = update(&rows[j], m.next(&rows[j]))
			}
			out, err := s.Swap(f.ctx, changes)
			if err != nil {
				return err
			}
			for _, o := range out {
				if o.Applied {
					applied[i]++
				}
			}
		}
		return nil
	})
	var want, got uint64
	for _, a := range applied {
		want += a
	}
	for _, k := range keys {
		got += f.load(k).Want.Generation - 1
	}
	if got != want || want == 0 {
		f.Fatalf("%d increments applied, %d stored", want, got)
	}
}
