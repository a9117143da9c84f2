package storetest

import (
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/pawlhq/pawl/store"
)

var modelTests = []test{{name: "Random", run: testModel}}

// rapid prints the command that repeats a failure.
func testModel(f *fixture) {
	handles := f.handles()
	rapid.Check(f.T, func(t *rapid.T) {
		m := &model{fixture: f, handles: handles, records: map[store.Key]*store.Record{}}
		m.empty(t)
		calls := map[string]func(*rapid.T){"swap": m.checkSwap, "load": m.checkLoad}
		if f.traits.Apply > 0 {
			calls["apply"] = m.checkApply
		}
		if f.traits.DueLag == 0 {
			calls["due"] = m.checkDue
		}
		if f.traits.ScanLag == 0 {
			calls["scan"] = m.checkScan
		}
		t.Repeat(calls)
	})
}

type model struct {
	*fixture
	handles [2]store.Store
	records map[store.Key]*store.Record
	gone    []*store.Record // earlier records, whose nonces must be refused
}

var (
	modelSpaces = []string{"p", "p\xff", "q"}
	modelNames  = []string{"a", "a\x00", "a\xff", "a\xffb", "A", "b", "\x00\x01", "é"}
)

// All checks share one store.
func (m *model) empty(t *rapid.T) {
	var keys []store.Key
	for _, s := range modelSpaces {
		for _, name := range modelNames {
			keys = append(keys, store.Key{Space: s, Name: name})
		}
	}
	found, err := load(m.ctx, m.store, keys...)
	if err != nil {
		t.Fatal(err)
	}
	var old []store.Change
	for r := range maps.Values(found) {
		old = append(old, remove(r))
	}
	if _, err := send(m.ctx, m.store, old); err != nil {
		t.Fatal(err)
	}
}

func (m *model) handle(t *rapid.T) store.Store {
	return m.handles[rapid.IntRange(0, 1).Draw(t, "handle")]
}

// rapid writes to a generator when it prints it, so parallel tests must not share one.
func drawKeys(t *rapid.T, least, most int) []store.Key {
	key := rapid.Custom(func(t *rapid.T) store.Key {
		return store.Key{
			Space: rapid.SampledFrom(modelSpaces).Draw(t, "space"),
			Name:  rapid.SampledFrom(modelNames).Draw(t, "name"),
		}
	})
	return rapid.SliceOfNDistinct(key, least, most, rapid.ID[store.Key]).Draw(t, "keys")
}

// Several records must be due at the same instant.
func drawTime(t *rapid.T, label string) time.Time {
	return t0.Add(time.Duration(rapid.IntRange(-2, 2).Draw(t, label)) * time.Millisecond)
}

// all reports whether all expectations are met.
func (m *model) drawChanges(t *rapid.T, most int) (changes []store.Change, was []*store.Record, all bool) {
	all = true
	for _, k := range drawKeys(t, 1, most) {
		c, now := store.Change{Key: k}, m.records[k]
		switch how := rapid.IntRange(0, 9).Draw(t, "nonce"); {
		case how == 0:
			c.Expect = m.nonce()
		case how == 1 && len(m.gone) > 0:
			c.Expect = rapid.SampledFrom(m.gone).Draw(t, "stale").Nonce
		case now != nil && how > 2:
			c.Expect = now.Nonce
		}
		if rapid.IntRange(0, 4).Draw(t, "delete") > 0 {
			c.Next = m.record(k.Name)
			c.Next.Key, c.Next.Due = k, drawTime(t, "due")
			if rapid.IntRange(0, 2).Draw(t, "never") == 0 {
				c.Next.Due = time.Time{}
			}
		}
		all = all && met(&c, now)
		changes, was = append(changes, c), append(was, now)
	}
	return changes, was, all
}

func met(c *store.Change, now *store.Record) bool {
	return now == nil && c.Expect.IsZero() && c.Next != nil || now != nil && now.Nonce == c.Expect
}

func (m *model) make(c *store.Change) {
	if was := m.records[c.Key]; was != nil {
		m.gone = append(m.gone, was)
	}
	if m.records[c.Key] = c.Next; c.Next == nil {
		delete(m.records, c.Key)
	}
}

func (m *model) checkSwap(t *rapid.T) {
	changes, was, _ := m.drawChanges(t, 6)
	out, err := send(m.ctx, m.handle(t), changes)
	if err != nil {
		t.Fatal(err)
	}
	for i := range changes {
		want := store.Outcome{Refused: true, Current: was[i]}
		if met(&changes[i], was[i]) {
			want = store.Outcome{Applied: true}
			m.make(&changes[i])
		}
		checkOutcome(t, &changes[i], &out[i], &want)
	}
}

func checkOutcome(t *rapid.T, c *store.Change, got, want *store.Outcome) {
	if got.Err != nil || got.Applied != want.Applied || got.Refused != want.Refused || !equal(got.Current, want.Current) {
		t.Fatalf("change %+v of %q: %s, want %s", c, c.Key, describe(got), describe(want))
	}
}

// A store may report only some of several refused changes.
func (m *model) checkApply(t *rapid.T) {
	changes, was, all := m.drawChanges(t, min(m.traits.Apply, 6))
	s := m.handle(t)
	out, err := unthrottled(m.ctx, func() ([]store.Outcome, error) { return s.Apply(m.ctx, changes) })
	if err != nil || len(out) != len(changes) {
		t.Fatalf("Apply: %d outcomes of %d, error %v", len(out), len(changes), err)
	}
	refused := 0
	for i := range changes {
		want := store.Outcome{Applied: all}
		if out[i].Refused && !met(&changes[i], was[i]) {
			want = store.Outcome{Refused: true, Current: was[i]}
			refused++
		}
		checkOutcome(t, &changes[i], &out[i], &want)
		if all {
			m.make(&changes[i])
		}
	}
	if !all && refused == 0 {
		t.Fatal("Apply: no change was applied, and none refused")
	}
}

func (m *model) checkLoad(t *rapid.T) {
	keys := drawKeys(t, 0, 5)
	found, err := load(m.ctx, m.handle(t), keys...)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		if !equal(found[k], m.records[k]) {
			t.Fatalf("Load: %s, want %s", show(found[k]), show(m.records[k]))
		}
	}
}

func (m *model) sorted(space string, order func(a, b *store.Record) int, match func(*store.Record) bool) []*store.Record {
	all := slices.SortedFunc(maps.Values(m.records), order)
	return slices.DeleteFunc(all, func(r *store.Record) bool { return r.Space != space || !match(r) })
}

func (m *model) checkDue(t *rapid.T) {
	r := store.DueRange{
		Space:  rapid.SampledFrom(modelSpaces).Draw(t, "space"),
		Before: drawTime(t, "before"),
		Skip:   rapid.IntRange(0, 3).Draw(t, "skip"),
		Limit:  rapid.IntRange(1, 8).Draw(t, "limit"),
	}
	if rapid.Bool().Draw(t, "paged") {
		r.After = store.Place{Due: drawTime(t, "after"), Name: rapid.SampledFrom(modelNames).Draw(t, "name")}
	}
	got, err := m.handle(t).Due(m.ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	after := &store.Record{Key: store.Key{Name: r.After.Name}, Due: r.After.Due}
	want := m.sorted(r.Space, byDue, func(x *store.Record) bool {
		return !x.Due.IsZero() && !x.Due.After(r.Before) && byDue(x, after) > 0
	})
	if complaint := compare(got, want[min(len(want), r.Skip):min(len(want), r.Skip+r.Limit)]); complaint != "" {
		t.Fatalf("Due(%+v): %s", r, complaint)
	}
}

func (m *model) checkScan(t *rapid.T) {
	bound := rapid.SampledFrom(append([]string{"", "", "aa", "z"}, modelNames...))
	r := store.Range{
		Space:  rapid.SampledFrom(modelSpaces).Draw(t, "space"),
		After:  bound.Draw(t, "after"),
		Before: bound.Draw(t, "before"),
		Newest: rapid.Bool().Draw(t, "newest"),
		Limit:  rapid.IntRange(0, 4).Draw(t, "limit"),
	}
	got, err := scan(m.ctx, m.handle(t), r)
	if err != nil {
		t.Fatal(err)
	}
	want := within(m.sorted(r.Space, byName, func(*store.Record) bool { return true }), r)
	if complaint := compare(got, want); complaint != "" {
		t.Fatalf("Scan(%+v): %s", r, complaint)
	}
}
