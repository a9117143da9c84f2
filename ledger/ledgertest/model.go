package ledgertest

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

var modelTests = []test{{name: "Random", run: testModel}}

// testModel drives two workers' handles and a map through the same random
// operations. A failure is shrunk, and prints how to repeat it.
func testModel(f *fixture) {
	handles := f.handles()
	rapid.Check(f.T, func(t *rapid.T) {
		m := &model{fixture: f, workers: handles, rows: map[ledger.RowKey]*ledger.Row{}}
		m.empty(t)
		t.Repeat(map[string]func(*rapid.T){
			"swap": m.checkSwap, "load": m.checkLoad, "due": m.checkDue, "scan": m.checkScan,
		})
	})
}

// model is what the store must amount to.
type model struct {
	*fixture
	workers [2]ledger.Store
	rows    map[ledger.RowKey]*ledger.Row
	gone    []*ledger.Row // rows that were there: their nonces must not pass
}

// empty removes what an earlier check left: all share one store, for making one
// may be slow.
func (m *model) empty(t *rapid.T) {
	var old []ledger.Change
	for r, err := range m.store.Scan(m.ctx, ledger.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		old = append(old, remove(&r))
	}
	if _, err := m.store.Swap(m.ctx, old); err != nil {
		t.Fatal(err)
	}
}

func (m *model) worker(t *rapid.T) ledger.Store {
	return m.workers[rapid.IntRange(0, 1).Draw(t, "worker")]
}

// drawKey makes its generator anew: rapid writes to a generator that it prints,
// and suites that run side by side must not share one.
func drawKey() *rapid.Generator[ledger.RowKey] {
	return rapid.Custom(func(t *rapid.T) ledger.RowKey {
		return ledger.RowKey{
			Pipeline:  rapid.SampledFrom([]string{"p", "p\xff", "q"}).Draw(t, "pipeline"),
			Bucket:    rapid.SampledFrom([]string{"b", "bb"}).Draw(t, "bucket"),
			Key:       rapid.SampledFrom([]string{"a", "a\xff", "a\xffb", "A", "b"}).Draw(t, "key"),
			VersionID: rapid.SampledFrom([]string{"", "", "v"}).Draw(t, "version"),
		}
	})
}

// drawRow draws a row in any state, with few different times so that they meet.
func (m *model) drawRow(t *rapid.T, k ledger.RowKey) *ledger.Row {
	at := rapid.Custom(func(t *rapid.T) time.Time {
		return t0.Add(time.Duration(rapid.IntRange(-3, 3).Draw(t, "µs")) * time.Microsecond)
	})
	r := m.row(k)
	r.UpdatedAt = at.Draw(t, "updated")
	r.Want.Generation = rapid.Uint64Range(1, 2).Draw(t, "want")
	r.Have.Generation = rapid.Uint64Range(0, 2).Draw(t, "have")
	r.Dead = rapid.IntRange(0, 5).Draw(t, "dead") == 0
	r.Want.Kind = rapid.SampledFrom([]event.Kind{event.Created, event.Removed}).Draw(t, "kind")
	switch rapid.IntRange(0, 3).Draw(t, "state") {
	case 1:
		r.Lease = ledger.Lease{Owner: "w", Fence: 7, Until: at.Draw(t, "until")}
	case 2:
		r.RetryAt = at.Draw(t, "retry")
	case 3:
		r.VerifyAt = at.Draw(t, "verify")
	}
	return r
}

// drawChange draws a change that may be right or wrong in any way.
func (m *model) drawChange(t *rapid.T, k ledger.RowKey) ledger.Change {
	c := ledger.Change{Key: k}
	was := m.rows[k]
	switch how := rapid.IntRange(0, 9).Draw(t, "nonce"); {
	case how == 0:
		c.Expect = m.nonce()
	case how == 1 && len(m.gone) > 0:
		c.Expect = rapid.SampledFrom(m.gone).Draw(t, "stale").Nonce
	case was != nil && how > 2:
		c.Expect = was.Nonce
	}
	// What deleting nothing amounts to is nobody's business.
	if rapid.IntRange(0, 4).Draw(t, "delete") > 0 || c.Expect.IsZero() {
		c.Row = m.drawRow(t, k)
	}
	return c
}

func (m *model) checkSwap(t *rapid.T) {
	var changes []ledger.Change
	var want []*ledger.Row // who refuses
	var applied []bool
	for _, k := range rapid.SliceOfNDistinct(drawKey(), 1, 6, rapid.ID[ledger.RowKey]).Draw(t, "batch") {
		c := m.drawChange(t, k)
		was := m.rows[c.Key]
		ok := was == nil && c.Expect.IsZero() || was != nil && was.Nonce == c.Expect
		changes, want, applied = append(changes, c), append(want, was), append(applied, ok)
		if !ok {
			continue
		}
		if was != nil {
			m.gone = append(m.gone, was)
		}
		if m.rows[c.Key] = c.Row; c.Row == nil {
			delete(m.rows, c.Key)
		}
	}
	out, err := m.worker(t).Swap(m.ctx, changes)
	if err != nil || len(out) != len(changes) {
		t.Fatalf("Swap: %d outcomes of %d, %v", len(out), len(changes), err)
	}
	for i, o := range out {
		if m.traits.Partial && changes[i].Row == nil && want[i] == nil {
			continue // gone: by this removal or not, nobody can tell
		}
		if o.Applied != applied[i] {
			t.Fatalf("change %d of %s: applied %v, want %v", i, changes[i].Key, o.Applied, applied[i])
		}
		if !o.Applied {
			check(t, want[i], o.Current)
		}
	}
}

func check(t *rapid.T, want, got *ledger.Row) {
	if d := diff(want, got); d != "" {
		t.Fatalf("row (-want +got):\n%s", d)
	}
}

func (m *model) checkLoad(t *rapid.T) {
	keys := rapid.SliceOfNDistinct(drawKey(), 0, 5, rapid.ID[ledger.RowKey]).Draw(t, "keys")
	rows, err := m.worker(t).Load(m.ctx, keys)
	if err != nil {
		t.Fatal(err)
	}
	got := map[ledger.RowKey]*ledger.Row{}
	for i := range rows {
		got[rows[i].RowKey] = &rows[i]
	}
	for _, k := range keys {
		check(t, m.rows[k], got[k])
		delete(got, k)
	}
	if len(got) > 0 {
		t.Fatalf("Load: %d rows nobody asked for", len(got))
	}
}

func (m *model) checkDue(t *rapid.T) {
	if m.traits.DueLag > 0 {
		return // what it shows depends on the time
	}
	pipeline := rapid.SampledFrom([]string{"p", "p\xff", "q", "none"}).Draw(t, "pipeline")
	before := t0.Add(time.Duration(rapid.IntRange(-4, 4).Draw(t, "before")) * time.Microsecond)
	limit := rapid.IntRange(1, 8).Draw(t, "limit")
	rows, err := m.worker(t).Due(m.ctx, pipeline, before, limit)
	if err != nil {
		t.Fatal(err)
	}
	var want []time.Time
	for _, r := range m.rows {
		if d := r.Due(); r.Pipeline == pipeline && !d.IsZero() && !d.After(before) {
			want = append(want, d)
		}
	}
	slices.SortFunc(want, time.Time.Compare)
	if m.traits.DueUnordered {
		if len(rows) != min(limit, len(want)) {
			t.Fatalf("Due: %d rows, want %d of %d", len(rows), limit, len(want))
		}
		want = nil
	}
	want = want[:min(limit, len(want))]
	// Rows due at one instant come in any order, so compare the times.
	var got []time.Time
	seen := map[ledger.RowKey]bool{}
	for i := range rows {
		if !m.traits.DueUnordered {
			got = append(got, rows[i].Due())
		}
		check(t, m.rows[rows[i].RowKey], &rows[i])
		if due := rows[i].Due(); seen[rows[i].RowKey] || due.IsZero() || due.After(before) {
			t.Fatalf("Due: %s, due %v, came twice or is not due at %v", rows[i].RowKey, due, before)
		}
		seen[rows[i].RowKey] = true
	}
	if d := diff(want, got); d != "" {
		t.Fatalf("due times (-want +got):\n%s", d)
	}
}

func (m *model) checkScan(t *rapid.T) {
	r := ledger.Range{}
	if rapid.Bool().Draw(t, "by pipeline") {
		r.Pipeline = rapid.SampledFrom([]string{"p", "p\xff", "q", "none"}).Draw(t, "pipeline")
		if rapid.Bool().Draw(t, "by bucket") {
			r.Bucket = rapid.SampledFrom([]string{"b", "bb", "c"}).Draw(t, "bucket")
			r.Prefix = rapid.SampledFrom([]string{"", "a", "a\xff", "\xff"}).Draw(t, "prefix")
		}
	}
	if rapid.Bool().Draw(t, "after") {
		r.After = drawKey().Draw(t, "after")
	}
	var want []*ledger.Row
	for k, row := range m.rows {
		if r.Match(k) {
			want = append(want, row)
		}
	}
	slices.SortFunc(want, func(a, b *ledger.Row) int { return a.Compare(b.RowKey) })
	var got []ledger.Row
	for row, err := range m.worker(t).Scan(m.ctx, r) {
		if err != nil {
			t.Fatalf("Scan: %v", err)
		}
		got = append(got, row)
	}
	if m.traits.ScanUnordered {
		slices.SortFunc(got, func(a, b ledger.Row) int { return a.Compare(b.RowKey) })
	}
	if len(got) != len(want) {
		t.Fatalf("Scan: %d rows of %d", len(got), len(want))
	}
	for i := range got {
		check(t, want[i], &got[i])
	}
}
