package ledgertest

import (
	"fmt"

	"github.com/pawlhq/pawl/ledger"
)

var batchTests = []test{
	{name: "Empty", run: testEmptyBatch},
	{name: "EachAlone", run: testEachAlone},
	{name: "Full", run: testFullBatch},
	{name: "Thousand", run: testThousand},
}

func testEmptyBatch(f *fixture) {
	f.swap()
	if rows, err := f.store.Load(f.ctx, nil); err != nil || len(rows) != 0 {
		f.Fatalf("Load of no keys: %d rows, %v", len(rows), err)
	}
}

// One refused change takes no other with it.
func testEachAlone(f *fixture) {
	a, b, c := f.row(key("a")), f.row(key("b")), f.row(key("c"))
	f.put(a, b, c)
	a2, d := f.next(a), f.row(key("d"))
	out := f.swap(
		update(a, a2),
		insert(f.row(key("b"))),
		update(f.row(key("none")), f.row(key("none"))),
		remove(c),
		remove(f.row(key("b"))),
		insert(d),
	)
	f.applied(out[0], out[3], out[5])
	f.refused(out[1], b)
	f.refused(out[2], nil)
	f.refused(out[4], b)
	f.stored(key("a"), a2)
	f.stored(key("b"), b)
	f.stored(key("none"), nil)
	f.stored(key("c"), nil)
	f.stored(key("d"), d)
}

// A store takes as many changes at once as it declares.
func testFullBatch(f *fixture) {
	changes := make([]ledger.Change, f.traits.Batch)
	for i := range changes {
		changes[i] = insert(f.row(key(fmt.Sprint(i))))
	}
	out, err := bare(f.store).Swap(f.ctx, changes)
	if err != nil || len(out) != len(changes) {
		f.Fatalf("%d outcomes of %d, %v", len(out), len(changes), err)
	}
}

func testThousand(f *fixture) {
	const n = 1000
	rows, keys := make([]*ledger.Row, n), make([]ledger.RowKey, n)
	for i := range rows {
		keys[i] = key(fmt.Sprintf("in/%04d.jpg", (i*7919)%n)) // in no order
		rows[i] = f.row(keys[i])
	}
	f.put(rows...)

	changes := make([]ledger.Change, n)
	for i, r := range rows {
		changes[i] = update(r, f.next(r))
		if i%2 == 1 {
			changes[i].Expect = f.nonce()
		}
	}
	for i, o := range f.swap(changes...) {
		if i%2 == 1 {
			f.refused(o, rows[i])
			continue
		}
		f.applied(o)
		rows[i] = changes[i].Row
	}

	got, err := f.store.Load(f.ctx, append(keys, key("none")))
	if err != nil || len(got) != n {
		f.Fatalf("Load: %d rows, %v", len(got), err)
	}
	byKey := map[ledger.RowKey]*ledger.Row{}
	for i := range got {
		byKey[got[i].RowKey] = &got[i]
	}
	for _, r := range rows {
		f.same(byKey[r.RowKey], r)
	}
}
