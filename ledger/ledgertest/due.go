package ledgertest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

var dueTests = []test{
	{name: "Kinds", run: testDueKinds},
	{name: "Exactly", run: testDueExactly},
	{name: "Order", run: testDueOrder},
	{name: "OnePipeline", run: testDueOnePipeline},
	{name: "Follows", run: testDueFollows},
	{name: "Drain", run: testDueDrain},
}

// wantDue fails the test unless Due returns the first rows of want, up to limit,
// in that order; of a store without an order, any of them.
func (f *fixture) wantDue(pipeline string, before time.Time, limit int, want ...*ledger.Row) {
	f.Helper()
	f.eventually(func() string {
		got, err := f.store.Due(f.ctx, pipeline, before, limit)
		if err != nil {
			f.Fatalf("Due: %v", err)
		}
		return f.compareDue(got, want, limit)
	})
}

// compareDue returns what is wrong with an answer of Due.
func (f *fixture) compareDue(got []ledger.Row, want []*ledger.Row, limit int) string {
	if n := min(limit, len(want)); len(got) != n {
		return fmt.Sprintf("%d rows are due, want %d of %s", len(got), n, keysOf(want))
	}
	rest := slices.Clone(want)
	for i := range got {
		at := 0
		if f.traits.DueUnordered {
			at = slices.IndexFunc(rest, func(r *ledger.Row) bool { return r.RowKey == got[i].RowKey })
		}
		if at < 0 || rest[at].RowKey != got[i].RowKey {
			return fmt.Sprintf("row %d of those due is %s, want of %s", i, got[i].RowKey, keysOf(rest))
		}
		if d := diff(rest[at], &got[i]); d != "" {
			return fmt.Sprintf("due row %s (-want +got):\n%s", got[i].RowKey, d)
		}
		rest = slices.Delete(rest, at, at+1)
	}
	return ""
}

func keysOf(rows []*ledger.Row) []string {
	keys := make([]string, len(rows))
	for i, r := range rows {
		keys[i] = r.RowKey.String()
	}
	return keys
}

// at makes an unsettled row that is due d after t0.
func (f *fixture) at(k string, d time.Duration) *ledger.Row {
	r := f.row(key(k))
	r.RetryAt = t0.Add(d)
	return r
}

// Every way of being due, and every way of not being.
func testDueKinds(f *fixture) {
	settled := f.row(key("settled"))
	settled.Have = settled.Want
	dead := f.row(key("dead"))
	dead.Dead, dead.RetryAt, dead.VerifyAt = true, t0, t0
	untouched := &ledger.Row{RowKey: key("untouched"), Nonce: f.nonce()}

	pending := f.row(key("1 pending"))
	failed := f.at("2 backing off", time.Second)
	expired := f.row(key("3 leased"))
	expired.Lease = ledger.Lease{Owner: "w", Fence: 1, Until: t0.Add(2 * time.Second)}
	verify := f.row(key("4 to verify"))
	verify.Have, verify.VerifyAt = verify.Want, t0.Add(3*time.Second)
	removed := f.row(key("5 removed, to verify"))
	removed.Want.Kind = event.Removed
	removed.Have, removed.VerifyAt = removed.Want, t0.Add(4*time.Second)
	want := []*ledger.Row{pending, failed, expired, verify, removed}

	f.put(settled, dead, untouched, removed, verify, expired, failed, pending)
	f.wantDue("p", t0.Add(-time.Hour), 10)
	for i := range want {
		f.wantDue("p", t0.Add(time.Duration(i)*time.Second), 10, want[:i+1]...)
	}
	f.wantDue("p", t0.AddDate(500, 0, 0), 10, want...)
}

// Due at before is due; a microsecond later is not.
func testDueExactly(f *fixture) {
	r := f.at("k", time.Minute)
	f.put(r)
	f.wantDue("p", t0.Add(time.Minute-time.Microsecond), 10)
	f.wantDue("p", t0.Add(time.Minute), 10, r)
	f.wantDue("p", t0.Add(time.Minute).In(time.FixedZone("", -7*3600)), 10, r)
	f.wantDue("p", t0.Add(time.Minute+time.Microsecond), 10, r)
}

// Earliest first, also where key order, text order or insertion would have it
// otherwise; the limit cuts off the latest.
func testDueOrder(f *fixture) {
	var want []*ledger.Row
	for i, d := range []time.Duration{
		-200 * 365 * 24 * time.Hour, -time.Hour, -time.Microsecond, 0, time.Microsecond, time.Millisecond,
		9 * time.Second, 10 * time.Second, 100 * time.Second, 200 * 365 * 24 * time.Hour,
	} {
		want = append(want, f.at(fmt.Sprintf("%c", 'z'-i), d))
	}
	f.put(want[7], want[2], want[9], want[0], want[5], want[1], want[8], want[3], want[6], want[4])
	end := t0.AddDate(900, 0, 0)
	for limit := 1; limit <= len(want)+1; limit++ {
		f.wantDue("p", end, limit, want...)
	}
}

// Rows of another pipeline neither show nor count.
func testDueOnePipeline(f *fixture) {
	var rows []*ledger.Row
	for i, p := range []string{"p", "P", "p\x00", "pp", "q", ""} {
		r := f.at("k", -time.Duration(i)*time.Hour)
		r.Pipeline = p
		rows = append(rows, r)
	}
	f.put(rows...)
	for _, r := range rows {
		f.wantDue(r.Pipeline, t0, 1, r)
		f.wantDue(r.Pipeline, t0, 10, r)
	}
	f.wantDue("absent", t0, 10)
}

// A swap moves the row, takes it off, or puts it back.
func testDueFollows(f *fixture) {
	a, b := f.at("a", time.Second), f.at("b", 2*time.Second)
	f.put(a, b)
	end := t0.Add(time.Hour)
	change := func(r *ledger.Row, edit func(*ledger.Row)) *ledger.Row {
		n := f.next(r)
		edit(n)
		f.applied(f.swap(update(r, n))...)
		return n
	}
	f.wantDue("p", end, 10, a, b)
	a = change(a, func(r *ledger.Row) { r.RetryAt = t0.Add(3 * time.Second) })
	f.wantDue("p", end, 10, b, a)
	a = change(a, func(r *ledger.Row) { r.RetryAt = t0 })
	f.wantDue("p", end, 10, a, b)
	b = change(b, func(r *ledger.Row) { r.Have = r.Want })
	f.wantDue("p", end, 10, a)
	b = change(b, func(r *ledger.Row) { r.Have, r.RetryAt, r.VerifyAt = r.Want, time.Time{}, t0.Add(-time.Second) })
	f.wantDue("p", end, 10, b, a)
	a = change(a, func(r *ledger.Row) { r.Dead = true })
	f.wantDue("p", end, 10, b)
	f.refused(f.swap(insert(f.row(key("a"))))[0], a)
	f.wantDue("p", end, 10, b)
	f.applied(f.swap(remove(b))...)
	f.wantDue("p", end, 10)
	b = f.at("b", 0)
	f.put(b)
	f.wantDue("p", end, 10, b)
}

// A sweeper that takes a batch at a time meets every row, and once where Due does
// not lag, also where many are due at the same instant.
func testDueDrain(f *fixture) {
	const n, batch = 600, 70
	changes := make([]ledger.Change, n)
	for i := range changes {
		changes[i] = insert(f.at(fmt.Sprintf("%04d", i), time.Duration(i/100)*time.Second))
	}
	shuffle := rand.New(f.random)
	shuffle.Shuffle(n, func(i, j int) { changes[i], changes[j] = changes[j], changes[i] })
	f.applied(f.swap(changes...)...)

	met := map[ledger.RowKey]bool{}
	for len(met) < n {
		f.eventually(func() string { return f.drainSome(met, batch, n) })
	}
	f.wantDue("p", t0.Add(time.Hour), batch)
}

// drainSome settles the rows that are due and were not met, and returns what is
// wrong with the answer.
func (f *fixture) drainSome(met map[ledger.RowKey]bool, batch, all int) string {
	f.Helper()
	rows, err := f.store.Due(f.ctx, "p", t0.Add(time.Hour), batch)
	if err != nil {
		f.Fatal(err)
	}
	late := f.traits.DueLag > 0
	if want := min(batch, all-len(met)); len(rows) != want && !late {
		return fmt.Sprintf("%d rows after %d, want %d", len(rows), len(met), want)
	}
	var finish []ledger.Change
	for i := range rows {
		r := &rows[i]
		switch {
		case met[r.RowKey] && late:
			continue
		case met[r.RowKey]:
			return fmt.Sprintf("row %s came twice", r.RowKey)
		case i > 0 && rows[i].Due().Before(rows[i-1].Due()) && !f.traits.DueUnordered:
			return fmt.Sprintf("row %s came after one that is due later", r.RowKey)
		}
		met[r.RowKey] = true
		next := f.next(r)
		next.Have = next.Want
		finish = append(finish, update(r, next))
	}
	if len(finish) == 0 {
		return fmt.Sprintf("no further rows after %d of %d", len(met), all)
	}
	f.applied(f.swap(finish...)...)
	return ""
}
