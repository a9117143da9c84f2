package ledgertest

import (
	"github.com/pawlhq/pawl/ledger"
)

var ownTests = []test{
	{name: "WhatIsGiven", run: testOwnGiven},
	{name: "WhatIsReturned", run: testOwnReturned},
}

// spoil writes over everything that a caller could share with a store.
func spoil(r *ledger.Row) {
	for i := range r.History {
		r.History[i] = ledger.Entry{What: "spoilt"}
	}
	*r = ledger.Row{LastError: "spoilt", History: r.History}
}

// The caller may use its rows and slices again as soon as Swap has returned.
func testOwnGiven(f *fixture) {
	given, r := f.full(key("k")), f.full(key("k"))
	given.Nonce = r.Nonce
	changes := []ledger.Change{insert(given)}
	f.applied(f.swap(changes...)...)
	spoil(given)
	changes[0] = ledger.Change{}
	f.stored(key("k"), r)

	given = f.next(f.full(key("k")))
	want := *f.next(r)
	want.Nonce = given.Nonce
	changes = []ledger.Change{update(r, given)}
	f.applied(f.swap(changes...)...)
	spoil(given)
	clear(changes)
	f.stored(key("k"), &want)

	keys := []ledger.RowKey{key("k")}
	rows, err := f.store.Load(f.ctx, keys)
	clear(keys)
	if err != nil || len(rows) != 1 {
		f.Fatalf("Load: %d rows, %v", len(rows), err)
	}
	f.same(&rows[0], &want)
}

// Rows returned are the caller's own, whichever way they came.
func testOwnReturned(f *fixture) {
	r := f.full(key("k"))
	r.Dead = false
	f.put(r)
	refused := func() *ledger.Row { return f.swap(insert(f.row(key("k"))))[0].Current }
	spoil(refused())
	f.stored(key("k"), r)
	spoil(f.load(key("k")))
	f.stored(key("k"), r)
	f.wantDue("p", r.Due(), 1, r)
	rows, err := f.store.Due(f.ctx, "p", r.Due(), 1)
	if err != nil || len(rows) != 1 {
		f.Fatalf("Due: %d rows, %v", len(rows), err)
	}
	spoil(&rows[0])
	f.stored(key("k"), r)
	spoil(&f.scan(ledger.Range{})[0])
	f.stored(key("k"), r)
	f.same(refused(), r)
}
