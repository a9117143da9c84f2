package storetest

import (
	"bytes"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/store"
)

var swapTests = []test{
	{name: "Insert", run: testInsert},
	{name: "Update", run: testUpdate},
	{name: "StaleNonce", run: testStaleNonce},
	{name: "Delete", run: testDelete},
	{name: "DeleteRefused", run: testDeleteRefused},
	{name: "Recreated", run: testRecreated},
	{name: "NonceBytes", run: testNonceBytes},
	{name: "Empty", run: testEmpty},
	{name: "EachAlone", run: testEachAlone},
	{name: "Full", run: testFull},
	{name: "Thousand", run: testThousand},
	{name: "CallerOwnsRecords", run: testOwn},
	{name: "LostAnswer", run: testLostAnswer},
}

func testInsert(f *fixture) {
	first := f.record("k")
	f.put(first)
	f.stored(first)
	f.refused(f.swap(insert(f.record("k")))[0], first)
	f.stored(first)
}

func testUpdate(f *fixture) {
	r := f.record("k")
	f.refused(f.swap(update(r, f.next(r)))[0], nil)
	f.absent(r.Key)
	f.put(r)
	for _, due := range []time.Time{{}, t0, t0.Add(time.Hour), {}} {
		n := f.next(r)
		n.Due = due
		f.applied(f.swap(update(r, n))...)
		f.stored(n)
		r = n
	}
}

// The refusal has the current record, so that the caller needs no read.
func testStaleNonce(f *fixture) {
	r1 := f.record("k")
	r2 := f.next(r1)
	f.put(r1)
	f.applied(f.swap(update(r1, r2))...)
	for _, old := range []*store.Record{r1, f.record("k")} {
		f.refused(f.swap(update(old, f.next(r1)))[0], r2)
	}
	f.stored(r2)
}

func testDelete(f *fixture) {
	r, other := f.record("k"), f.record("other")
	f.put(r, other)
	f.applied(f.swap(remove(r))...)
	f.absent(r.Key)
	f.stored(other)
	again := f.record("k")
	f.put(again)
	f.stored(again)
}

func testDeleteRefused(f *fixture) {
	r := f.record("k")
	f.put(r)
	f.refused(f.swap(remove(f.record("k")))[0], r)
	f.refused(f.swap(remove(f.record("none")))[0], nil)
	f.refused(f.swap(store.Change{Key: r.Key})[0], r)
	f.refused(f.swap(store.Change{Key: key("none")})[0], nil)
	f.stored(r)
}

func testRecreated(f *fixture) {
	r := f.record("k")
	f.put(r)
	f.applied(f.swap(remove(r))...)
	again := f.record("k")
	f.put(again)
	f.refused(f.swap(update(r, f.next(r)))[0], again)
	f.refused(f.swap(remove(r))[0], again)
}

func testNonceBytes(f *fixture) {
	var nonces []store.Nonce
	for _, b := range []byte{1, ' ', '\'', 0x80, 0xff} {
		n := store.Nonce(bytes.Repeat([]byte{b}, 16))
		low, high := n, n
		low[0] ^= 1
		high[15] ^= 1
		nonces = append(nonces, n, low, high)
	}
	nonces = append(nonces, store.Nonce{0: 1}, store.Nonce{15: 1})
	r := f.record("k")
	f.put(r)
	for _, n := range nonces {
		next := f.next(r)
		next.Nonce = n
		f.applied(f.swap(update(r, next))...)
		f.stored(next)
		for _, other := range nonces {
			if other != n {
				f.refused(f.swap(store.Change{Key: r.Key, Expect: other, Next: f.next(next)})[0], next)
			}
		}
		r = next
	}
}

func testEmpty(f *fixture) {
	out, err := f.store.Swap(f.ctx, nil)
	if err != nil || len(out) != 0 {
		f.Fatalf("Swap of no changes: %d outcomes, error %v", len(out), err)
	}
	if records, err := f.store.Load(f.ctx, nil); err != nil || len(records) != 0 {
		f.Fatalf("Load of no keys: %d records, error %v", len(records), err)
	}
}

func testEachAlone(f *fixture) {
	a, b, c := f.record("a"), f.record("b"), f.record("c")
	f.put(a, b, c)
	a2, d := f.next(a), f.record("d")
	out := f.swap(
		update(a, a2),
		insert(f.record("b")),
		update(f.record("none"), f.record("none")),
		remove(c),
		remove(f.record("e")),
		insert(d),
	)
	f.applied(out[0], out[3], out[5])
	f.refused(out[1], b)
	f.refused(out[2], nil)
	f.refused(out[4], nil)
	f.stored(a2, b, d)
	f.absent(key("none"), c.Key, key("e"))
}

func testFull(f *fixture) {
	changes := make([]store.Change, f.traits.Batch)
	for i := range changes {
		changes[i] = insert(f.record(fmt.Sprint(i)))
	}
	out, err := f.store.Swap(f.ctx, changes)
	if err != nil || len(out) != len(changes) {
		f.Fatalf("%d outcomes of %d, error %v", len(out), len(changes), err)
	}
	f.applied(out...)
}

func testThousand(f *fixture) {
	const n = 1000
	records, changes := make([]*store.Record, n), make([]store.Change, n)
	for i := range records {
		records[i] = f.record(fmt.Sprintf("in/%04d.jpg", (i*7919)%n))
	}
	f.put(records...)
	for i, r := range records {
		changes[i] = update(r, f.next(r))
		if i%2 == 1 {
			changes[i].Expect = f.nonce()
		}
	}
	for i, o := range f.swap(changes...) {
		if i%2 == 1 {
			f.refused(o, records[i])
			continue
		}
		f.applied(o)
		records[i] = changes[i].Next
	}
	f.stored(records...)
}

func testOwn(f *fixture) {
	given := f.record("k")
	want := *given
	changes := []store.Change{insert(given)}
	f.applied(f.swap(changes...)...)
	*given = store.Record{Body: "overwritten"}
	clear(changes)
	f.stored(&want)
	spoil := func(r *store.Record) { *r = store.Record{Body: "overwritten"} }
	spoil(f.swap(insert(f.record("k")))[0].Current)
	found, err := f.store.Load(f.ctx, []store.Key{want.Key})
	if err != nil {
		f.Fatal(err)
	}
	spoil(&found[0])
	f.stored(&want)
}

func testLostAnswer(f *fixture) {
	for _, fault := range Faults {
		faulty := NewFaulty(f.store, func(call int) Fault {
			if call == 0 {
				return fault
			}
			return None
		})
		r := f.record(fault.String())
		out, err := faulty.Swap(f.ctx, []store.Change{insert(r)})
		landed := err == nil && out[0].Applied
		for range 2 {
			found, err := load(f.ctx, faulty, r.Key)
			if err != nil {
				f.Fatal(err)
			}
			landed = landed || equal(found[r.Key], r)
		}
		if fault == Later {
			f.absent(r.Key)
			f.refusedOrApplied(faulty, r)
			continue
		}
		again, err := faulty.Swap(f.ctx, []store.Change{insert(r)})
		switch {
		case err != nil:
			f.Fatal(err)
		case landed:
			f.refused(again[0], r)
		default:
			f.applied(again...)
		}
		f.stored(r)
	}
}

func (f *fixture) refusedOrApplied(s store.Store, r *store.Record) {
	f.Helper()
	out, err := s.Swap(f.ctx, []store.Change{insert(r)})
	if err != nil {
		f.Fatal(err)
	}
	if !out[0].Applied {
		f.refused(out[0], r)
	}
	f.stored(r)
}
