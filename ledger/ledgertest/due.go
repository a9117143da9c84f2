package ledgertest

import (
	"fmt"
	"math/rand/v2"
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

func (f *fixture) due(pipeline string, before time.Time, limit int) []ledger.Row {
	f.Helper()
	rows, err := f.store.Due(f.ctx, pipeline, before, limit)
	if err != nil {
		f.Fatalf("Due: %v", err)
	}
	return rows
}

// wantDue compares got with want in the order given.
func (f *fixture) wantDue(got []ledger.Row, want ...*ledger.Row) {
	f.Helper()
	sameKeys(f, got, want)
	for i := range want {
		f.same(&got[i], want[i])
	}
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
	f.wantDue(f.due("p", t0.Add(-time.Hour), 10))
	for i := range want {
		f.wantDue(f.due("p", t0.Add(time.Duration(i)*time.Second), 10), want[:i+1]...)
	}
	f.wantDue(f.due("p", t0.AddDate(500, 0, 0), 10), want...)
}

// Due at before is due; a microsecond later is not.
func testDueExactly(f *fixture) {
	r := f.at("k", time.Minute)
	f.put(r)
	f.wantDue(f.due("p", t0.Add(time.Minute-time.Microsecond), 10))
	f.wantDue(f.due("p", t0.Add(time.Minute), 10), r)
	f.wantDue(f.due("p", t0.Add(time.Minute).In(time.FixedZone("", -7*3600)), 10), r)
	f.wantDue(f.due("p", t0.Add(time.Minute+time.Microsecond), 10), r)
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
		f.wantDue(f.due("p", end, limit), want[:min(limit, len(want))]...)
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
		f.wantDue(f.due(r.Pipeline, t0, 1), r)
		f.wantDue(f.due(r.Pipeline, t0, 10), r)
	}
	f.wantDue(f.due("absent", t0, 10))
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
	f.wantDue(f.due("p", end, 10), a, b)
	a = change(a, func(r *ledger.Row) { r.RetryAt = t0.Add(3 * time.Second) })
	f.wantDue(f.due("p", end, 10), b, a)
	a = change(a, func(r *ledger.Row) { r.RetryAt = t0 })
	f.wantDue(f.due("p", end, 10), a, b)
	b = change(b, func(r *ledger.Row) { r.Have = r.Want })
	f.wantDue(f.due("p", end, 10), a)
	b = change(b, func(r *ledger.Row) { r.Have, r.RetryAt, r.VerifyAt = r.Want, time.Time{}, t0.Add(-time.Second) })
	f.wantDue(f.due("p", end, 10), b, a)
	a = change(a, func(r *ledger.Row) { r.Dead = true })
	f.wantDue(f.due("p", end, 10), b)
	f.refused(f.swap(insert(f.row(key("a"))))[0], a)
	f.wantDue(f.due("p", end, 10), b)
	f.applied(f.swap(remove(b))...)
	f.wantDue(f.due("p", end, 10))
	b = f.at("b", 0)
	f.put(b)
	f.wantDue(f.due("p", end, 10), b)
}

// A sweeper that takes a batch at a time meets every row once, also where many
// are due at the same instant.
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
	last := time.Time{}
	for {
		rows := f.due("p", t0.Add(time.Hour), batch)
		if len(rows) == 0 {
			break
		}
		if want := min(batch, n-len(met)); len(rows) != want {
			f.Fatalf("%d rows after %d, want %d", len(rows), len(met), want)
		}
		settle := make([]ledger.Change, len(rows))
		for i := range rows {
			r := &rows[i]
			if met[r.RowKey] || r.Due().Before(last) {
				f.Fatalf("row %s due %v came twice, or after one due %v", r.RowKey, r.Due(), last)
			}
			met[r.RowKey], last = true, r.Due()
			next := f.next(r)
			next.Have = next.Want
			settle[i] = update(r, next)
		}
		f.applied(f.swap(settle...)...)
	}
	if len(met) != n {
		f.Fatalf("met %d rows of %d", len(met), n)
	}
}
