package storetest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pawlhq/pawl/store"
)

var dueTests = []test{
	{name: "Exactly", run: testDueExactly},
	{name: "Milliseconds", run: testDueMilliseconds},
	{name: "Order", run: testDueOrder},
	{name: "Pages", run: testDuePages},
	{name: "OneSpace", run: testDueOneSpace},
	{name: "Follows", run: testDueFollows},
	{name: "Drain", run: testDueDrain},
}

func (f *fixture) due(r store.DueRange, want ...*store.Record) {
	f.Helper()
	f.eventually(f.traits.DueLag, func() string {
		got, err := f.store.Due(f.ctx, r)
		if err != nil {
			f.Fatalf("Due: %v", err)
		}
		if complaint := compare(got, want); complaint != "" {
			return fmt.Sprintf("Due(%+v): %s", r, complaint)
		}
		return ""
	})
}

func (f *fixture) at(name string, d time.Duration) *store.Record {
	r := f.record(name)
	r.Due = t0.Add(d)
	return r
}

func testDueExactly(f *fixture) {
	r, never := f.at("k", time.Minute), f.record("never")
	never.Due = time.Time{}
	f.put(r, never)
	before := func(d time.Duration) store.DueRange {
		return store.DueRange{Space: space, Before: t0.Add(time.Minute + d), Limit: 10}
	}
	f.due(before(-time.Millisecond))
	f.due(before(0), r)
	f.due(before(time.Nanosecond), r)
	f.due(before(100*365*24*time.Hour), r)
	inZone := before(0)
	inZone.Before = inZone.Before.In(time.FixedZone("", -7*3600))
	f.due(inZone, r)
}

func testDueMilliseconds(f *fixture) {
	r := f.record("k")
	want := *r
	r.Due = r.Due.Add(time.Millisecond - 1).In(time.FixedZone("", 3600))
	f.put(r)
	f.stored(&want)
	f.due(store.DueRange{Space: space, Before: t0, Limit: 1}, &want)
}

func testDueOrder(f *fixture) {
	var want []*store.Record
	for i, d := range []time.Duration{
		-200 * 365 * 24 * time.Hour, -57 * 365 * 24 * time.Hour, -time.Hour, -time.Millisecond, 0, 0, time.Millisecond,
		9 * time.Second, 10 * time.Second, 100 * time.Second, 200 * 365 * 24 * time.Hour,
	} {
		want = append(want, f.at(fmt.Sprintf("%c", 'z'-i), d))
	}
	want[4], want[5] = want[5], want[4]
	end := f.record("dead")
	end.Due = time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC)
	want = append(want, end)
	for _, i := range rand.New(f.random).Perm(len(want)) {
		f.put(want[i])
	}
	for limit := 1; limit <= len(want)+1; limit++ {
		f.due(store.DueRange{Space: space, Before: end.Due, Limit: limit}, want[:min(limit, len(want))]...)
	}
	for i, r := range want {
		after := store.Place{Due: r.Due, Name: r.Name}
		f.due(store.DueRange{Space: space, After: after, Before: end.Due, Limit: 100}, want[i+1:]...)
		f.due(store.DueRange{Space: space, After: after, Before: r.Due, Limit: 100}, dueWith(want, i)...)
	}
}

func dueWith(want []*store.Record, i int) (same []*store.Record) {
	for _, r := range want[i+1:] {
		if r.Due.Equal(want[i].Due) {
			same = append(same, r)
		}
	}
	return same
}

// Many records have the same due time.
func testDuePages(f *fixture) {
	const n = 1100
	want := make([]*store.Record, n)
	for i := range want {
		want[i] = f.at(fmt.Sprintf("%x/%d", i*7919%n, i), time.Duration(i/1000)*time.Millisecond)
	}
	f.put(want...)
	slices.SortFunc(want, byDue)
	for _, limit := range []int{1000, 550, 100, 73} {
		f.eventually(f.traits.DueLag, func() string { return f.pageDue(limit, want) })
	}
	at := store.Place{Due: t0, Name: want[10].Name + "\x00"}
	f.due(store.DueRange{Space: space, After: at, Before: t0, Limit: 5}, want[11:16]...)
	f.due(store.DueRange{Space: space, After: at, Before: t0, Skip: 100, Limit: 5}, want[111:116]...)
	f.due(store.DueRange{Space: space, Before: t0.Add(time.Hour), Skip: n - 2, Limit: 5}, want[n-2:]...)
	f.due(store.DueRange{Space: space, Before: t0.Add(time.Hour), Skip: n, Limit: 5})
	at = store.Place{Due: t0.Add(-time.Millisecond), Name: "z"}
	f.due(store.DueRange{Space: space, After: at, Before: t0, Limit: 5}, want[:5]...)
}

func (f *fixture) pageDue(limit int, want []*store.Record) string {
	f.Helper()
	var got []store.Record
	r := store.DueRange{Space: space, Before: t0.Add(time.Hour), Limit: limit}
	for {
		page, err := f.store.Due(f.ctx, r)
		if err != nil {
			f.Fatal(err)
		}
		if got = append(got, page...); len(page) < limit || len(got) > len(want) {
			return compare(got, want)
		}
		last := page[len(page)-1]
		r.After = store.Place{Due: last.Due, Name: last.Name}
	}
}

func testDueOneSpace(f *fixture) {
	var records []*store.Record
	for i, s := range []string{"p", "P", "p\x00", "pp", "q"} {
		r := f.at("k", -time.Duration(i)*time.Hour)
		r.Space = s
		records = append(records, r)
	}
	f.put(records...)
	for _, r := range records {
		for _, limit := range []int{1, 10} {
			f.due(store.DueRange{Space: r.Space, Before: t0, Limit: limit}, r)
		}
	}
	f.due(store.DueRange{Space: "none", Before: t0, Limit: 10})
}

func testDueFollows(f *fixture) {
	a, b := f.at("a", time.Second), f.at("b", 2*time.Second)
	f.put(a, b)
	all := store.DueRange{Space: space, Before: t0.Add(time.Hour), Limit: 10}
	move := func(r *store.Record, to time.Time) *store.Record {
		n := f.next(r)
		n.Due = to
		f.applied(f.swap(update(r, n))...)
		return n
	}
	f.due(all, a, b)
	a = move(a, t0.Add(3*time.Second))
	f.due(all, b, a)
	a = move(a, t0)
	f.due(all, a, b)
	b = move(b, time.Time{})
	f.due(all, a)
	b = move(b, t0.Add(-time.Second))
	f.due(all, b, a)
	f.refused(f.swap(insert(f.record("a")))[0], a)
	a = move(a, a.Due)
	f.due(all, b, a)
	f.applied(f.swap(remove(b))...)
	f.due(all, a)
	b = f.at("b", 0)
	f.put(b)
	f.due(all, a, b)
}

func testDueDrain(f *fixture) {
	const n, limit = 300, 70
	left := map[string]*store.Record{}
	for i := range n {
		r := f.at(fmt.Sprintf("%04d", i*7919%n), time.Duration(i/100)*time.Second)
		left[r.Name] = r
		f.put(r)
	}
	for len(left) > 0 {
		f.eventually(f.traits.DueLag, func() string { return f.drainPage(left, limit) })
	}
	f.due(store.DueRange{Space: space, Before: t0.Add(time.Hour), Limit: limit})
}

func (f *fixture) drainPage(left map[string]*store.Record, limit int) string {
	f.Helper()
	page, err := f.store.Due(f.ctx, store.DueRange{Space: space, Before: t0.Add(time.Hour), Limit: limit})
	if err != nil {
		f.Fatal(err)
	}
	want := slices.SortedFunc(maps.Values(left), byDue)
	if complaint := compare(page, want[:min(limit, len(want))]); complaint != "" {
		return complaint
	}
	for i := range page {
		n := f.next(&page[i])
		n.Due = time.Time{}
		f.applied(f.swap(update(&page[i], n))...)
		delete(left, n.Name)
	}
	return ""
}
