package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/pawlhq/pawl/store"
)

var raceTests = []test{
	{name: "Increments", run: testRaceIncrements},
	{name: "OneInserter", run: testRaceInsert},
	{name: "InsertAndDelete", run: testRaceInsertAndDelete},
	{name: "Batches", run: testRaceBatches},
	{name: "HotRecord", run: testRaceHotRecord, needs: applies},
	{name: "CrossingApplies", run: testRaceCrossing, needs: applies},
}

const racers = 8

func (f *fixture) race(run func(i int, s store.Store, m *maker) error) {
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
			f.Fatalf("racer %d: %v", i, err)
		}
	}
}

// edit receives the current record, or nil.
func modify(ctx context.Context, s store.Store, k store.Key, edit func(*store.Record) store.Change) error {
	found, err := load(ctx, s, k)
	if err != nil {
		return err
	}
	for now := found[k]; ; {
		out, err := send(ctx, s, []store.Change{edit(now)})
		switch {
		case err != nil:
			return err
		case out[0].Err != nil:
			return out[0].Err
		case out[0].Applied:
			return nil
		}
		now = out[0].Current
	}
}

func increment(ctx context.Context, s store.Store, k store.Key, m *maker) error {
	return modify(ctx, s, k, func(r *store.Record) store.Change {
		if r == nil {
			return insert(m.record(k.Name))
		}
		return update(r, m.next(r))
	})
}

func (f *fixture) counted(names ...string) (sum int) {
	f.Helper()
	for _, name := range names {
		found, err := load(f.ctx, f.store, key(name))
		if err != nil || found[key(name)] == nil {
			f.Fatalf("record %q: %v, error %v", name, found, err)
		}
		sum += count(found[key(name)])
	}
	return sum
}

func testRaceIncrements(f *fixture) {
	const each = 30
	names := []string{"a", "b", "c"}
	f.race(func(i int, s store.Store, m *maker) error {
		for n := range each {
			if err := increment(f.ctx, s, key(names[(i+n)%len(names)]), m); err != nil {
				return err
			}
		}
		return nil
	})
	if sum := f.counted(names...); sum != racers*each {
		f.Fatalf("%d increments are left of %d", sum, racers*each)
	}
}

func testRaceInsert(f *fixture) {
	const rounds = 10
	var mu sync.Mutex
	winner, refused := map[string]store.Nonce{}, map[string][]store.Nonce{}
	f.race(func(_ int, s store.Store, m *maker) error {
		for n := range rounds {
			r := m.record(fmt.Sprint(n))
			out, err := send(f.ctx, s, []store.Change{insert(r)})
			if err != nil {
				return err
			}
			mu.Lock()
			switch {
			case out[0].Applied && !winner[r.Name].IsZero():
				err = fmt.Errorf("%s was inserted twice", r.Name)
			case out[0].Applied:
				winner[r.Name] = r.Nonce
			default:
				refused[r.Name] = append(refused[r.Name], out[0].Current.Nonce)
			}
			mu.Unlock()
			if err != nil {
				return err
			}
		}
		return nil
	})
	for name, by := range refused {
		for _, n := range by {
			if n != winner[name] {
				f.Errorf("%s: refused by %x, want %x", name, n, winner[name])
			}
		}
	}
	if len(winner) != rounds {
		f.Errorf("%d records were inserted, want %d", len(winner), rounds)
	}
}

// The insertions and deletions must alternate.
func testRaceInsertAndDelete(f *fixture) {
	const each = 20
	var balance [racers]int
	f.race(func(i int, s store.Store, m *maker) error {
		for range each {
			delta := 0
			err := modify(f.ctx, s, key("k"), func(r *store.Record) store.Change {
				if r == nil {
					delta = 1
					return insert(m.record("k"))
				}
				delta = -1
				return remove(r)
			})
			if err != nil {
				return err
			}
			balance[i] += delta
		}
		return nil
	})
	left := 0
	for _, b := range balance {
		left += b
	}
	found, err := load(f.ctx, f.store, key("k"))
	if err != nil || len(found) != left {
		f.Fatalf("%d records exist and %d should, error %v", len(found), left, err)
	}
}

func testRaceBatches(f *fixture) {
	const n, each = 20, 8
	names, keys := make([]string, n), make([]store.Key, n)
	for i := range keys {
		names[i], keys[i] = fmt.Sprint(i), key(fmt.Sprint(i))
		f.put(f.record(names[i]))
	}
	var applied [racers]int
	f.race(func(i int, s store.Store, m *maker) error {
		order := rand.New(m.random)
		for range each {
			records, err := s.Load(f.ctx, keys)
			if err != nil {
				return err
			}
			order.Shuffle(len(records), func(a, b int) { records[a], records[b] = records[b], records[a] })
			changes := make([]store.Change, len(records))
			for j := range records {
				changes[j] = update(&records[j], m.next(&records[j]))
			}
			out, err := send(f.ctx, s, changes)
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
	want := n
	for _, a := range applied {
		want += a
	}
	if got := f.counted(names...); got != want || want == n {
		f.Fatalf("the records count %d, want %d", got, want)
	}
}

func testRaceHotRecord(f *fixture) {
	const each = 15
	hot := f.record("hot")
	f.put(hot)
	f.race(func(i int, s store.Store, m *maker) error {
		now := hot
		for n := range each {
			own := m.record(fmt.Sprintf("%d of %d", n, i))
			for {
				out, err := unthrottled(f.ctx, func() ([]store.Outcome, error) {
					next := m.next(now)
					out, err := s.Apply(f.ctx, []store.Change{insert(own), update(now, next)})
					if err == nil && out[1].Applied {
						now = next
					}
					return out, err
				})
				if err != nil {
					return err
				}
				if out[0].Applied != out[1].Applied {
					return fmt.Errorf("half applied: %s, %s", describe(&out[0]), describe(&out[1]))
				}
				if out[0].Applied {
					break
				}
				if !out[1].Refused || out[1].Current == nil || out[0].Refused {
					return fmt.Errorf("unexpected outcomes: %s, %s", describe(&out[0]), describe(&out[1]))
				}
				now = out[1].Current
			}
		}
		return nil
	})
	records, err := scan(f.ctx, f.store, store.Range{Space: space})
	if got := f.counted("hot"); err != nil || got != racers*each+1 || len(records) != got {
		f.Fatalf("counted %d with %d records, want %d, error %v", got, len(records), racers*each+1, err)
	}
}

func testRaceCrossing(f *fixture) {
	const each = 10
	names := []string{"a", "b", "c", "d"}[:min(4, f.traits.Apply)]
	var keys []store.Key
	for _, name := range names {
		keys = append(keys, key(name))
		f.put(f.record(name))
	}
	f.race(func(_ int, s store.Store, m *maker) error {
		order := rand.New(m.random)
		for done := 0; done < each; {
			found, err := load(f.ctx, s, keys...)
			if err != nil {
				return err
			}
			changes := make([]store.Change, len(keys))
			for i, j := range order.Perm(len(keys)) {
				changes[i] = update(found[keys[j]], m.next(found[keys[j]]))
			}
			out, err := unthrottled(f.ctx, func() ([]store.Outcome, error) { return s.Apply(f.ctx, changes) })
			if err != nil {
				return err
			}
			if out[0].Applied {
				done++
			}
		}
		return nil
	})
	for _, name := range names {
		if got := f.counted(name); got != racers*each+1 {
			f.Errorf("record %s counts %d, want %d", name, got, racers*each+1)
		}
	}
}
