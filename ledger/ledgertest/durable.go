package ledgertest

import (
	"fmt"
	"time"

	"github.com/pawlhq/pawl/ledger"
)

var durableTests = []test{
	{name: "Volatile", run: testVolatile},
	{name: "Reopen", run: testReopen, needs: durable},
	{name: "OtherHandle", run: testOtherHandle, needs: func(h *Harness) bool { return h.Shared }},
}

// What was answered is there for whoever comes next.
func testReopen(f *fixture) {
	gone := f.row(key("gone"))
	f.put(gone)
	var rows []*ledger.Row
	for round := range 4 {
		s, err := f.open()
		if err != nil {
			f.Fatal(err)
		}
		r := f.full(key(fmt.Sprint(round)))
		r.Dead = false
		r.Lease.Until = r.Lease.Until.Add(time.Duration(round) * time.Second) // when it is due
		changes := []ledger.Change{insert(r)}
		if round == 1 {
			changes = append(changes, remove(gone))
		}
		out, err := s.Swap(f.ctx, changes)
		if err != nil {
			f.Fatal(err)
		}
		f.applied(out...)
		if err := s.Close(); err != nil {
			f.Fatal(err)
		}
		rows = append(rows, r)
	}
	f.store = f.handle()
	f.wantRows(f.scan(ledger.Range{}), rows...)
	f.wantDue("p", rows[3].Due(), 10, rows...)
	f.refused(f.swap(insert(f.row(key("2"))))[0], rows[2])
	f.applied(f.swap(update(rows[2], f.next(rows[2])))...)
}

// What one handle has written is what another reads, at once.
func testOtherHandle(f *fixture) {
	other := f.handle()
	r := f.row(key("k"))
	f.put(r)
	for range 10 {
		f.same(f.loadFrom(other, key("k")), r)
		n := f.next(r)
		out, err := other.Swap(f.ctx, []ledger.Change{update(r, n)})
		if err != nil {
			f.Fatal(err)
		}
		f.applied(out...)
		f.stored(key("k"), n)
		r = n
	}
}

// A store that forgets says so, or messages would be acknowledged on its word.
func testVolatile(f *fixture) {
	if f.traits.Volatile == f.harness.Durable {
		f.Fatalf("volatile %v, and declared durable %v", f.traits.Volatile, f.harness.Durable)
	}
}
