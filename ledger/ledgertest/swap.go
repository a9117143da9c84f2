package ledgertest

import (
	"bytes"

	"github.com/pawlhq/pawl/ledger"
)

var swapTests = []test{
	{name: "MustNotExist", run: testMustNotExist},
	{name: "NonceMatches", run: testNonceMatches},
	{name: "NonceDiffers", run: testNonceDiffers},
	{name: "NoRowToUpdate", run: testNoRowToUpdate},
	{name: "Delete", run: testDelete},
	{name: "DeleteRefused", run: testDeleteRefused},
	{name: "RecreatedRow", run: testRecreatedRow},
	{name: "NonceBytes", run: testNonceBytes},
	{name: "Token", run: testToken},
}

func testMustNotExist(f *fixture) {
	first, second := f.row(key("k")), f.row(key("k"))
	f.put(first)
	f.stored(key("k"), first)
	f.refused(f.swap(insert(second))[0], first)
	f.stored(key("k"), first)
}

func testNonceMatches(f *fixture) {
	r := f.row(key("k"))
	f.put(r)
	for range 3 {
		n := f.next(r)
		f.applied(f.swap(update(r, n))...)
		f.stored(key("k"), n)
		r = n
	}
}

// The refusing row saves the caller a read.
func testNonceDiffers(f *fixture) {
	r1 := f.row(key("k"))
	r2, lost := f.next(r1), f.next(r1)
	f.put(r1)
	f.applied(f.swap(update(r1, r2))...)
	f.refused(f.swap(update(r1, lost))[0], r2)
	f.stored(key("k"), r2)

	stranger := f.row(key("k"))
	f.refused(f.swap(update(stranger, lost))[0], r2)
	f.stored(key("k"), r2)
}

func testNoRowToUpdate(f *fixture) {
	r := f.row(key("k"))
	f.refused(f.swap(update(r, f.next(r)))[0], nil)
	f.stored(key("k"), nil)
}

func testDelete(f *fixture) {
	r, other := f.row(key("k")), f.row(key("other"))
	f.put(r, other)
	f.applied(f.swap(remove(r))...)
	f.stored(key("k"), nil)
	f.stored(key("other"), other)

	again := f.row(key("k"))
	f.put(again)
	f.stored(key("k"), again)
}

func testDeleteRefused(f *fixture) {
	r := f.row(key("k"))
	f.put(r)
	f.refused(f.swap(remove(f.row(key("k"))))[0], r)
	f.stored(key("k"), r)
	f.refused(f.swap(remove(f.row(key("none"))))[0], nil)
	// A delete that expects no row must not delete one.
	f.refused(f.swap(ledger.Change{Key: key("k")})[0], r)
	f.stored(key("k"), r)
}

// A cache may hold a row that was purged and has come back: its nonce must not
// pass.
func testRecreatedRow(f *fixture) {
	r := f.row(key("k"))
	f.put(r)
	f.applied(f.swap(remove(r))...)
	again := f.row(key("k"))
	f.put(again)
	f.refused(f.swap(update(r, f.next(r)))[0], again)
	f.refused(f.swap(remove(r))[0], again)
}

// Every byte of a nonce counts, whatever it is.
func testNonceBytes(f *fixture) {
	var nonces []ledger.Nonce
	for _, b := range []byte{0, 1, ' ', '\'', 0x80, 0xff} {
		n := ledger.Nonce(bytes.Repeat([]byte{b}, 16))
		low, high := n, n
		low[0] ^= 1
		high[15] ^= 1
		nonces = append(nonces, n, low, high)
	}
	r := f.row(key("k"))
	f.put(r)
	for _, n := range nonces {
		if n.IsZero() {
			continue
		}
		next := f.next(r)
		next.Nonce = n
		f.applied(f.swap(update(r, next))...)
		f.stored(key("k"), next)
		for _, other := range nonces {
			if other != n && !other.IsZero() {
				c := update(r, f.next(next))
				c.Expect = other
				f.refused(f.swap(c)[0], next)
			}
		}
		r = next
	}
}

// A backend with a token of its own reports it with the answer as it does with
// the row, or a cached row could not be swapped.
func testToken(f *fixture) {
	r := f.row(key("k"))
	out := f.swap(insert(r))
	f.applied(out...)
	for range 2 {
		if got := f.load(key("k")).Token; got != out[0].Token {
			f.Fatalf("token %q of the loaded row, %q of the outcome", got, out[0].Token)
		}
		n := f.next(r)
		n.Token = out[0].Token
		out = f.swap(update(r, n))
		f.applied(out...)
		r = n
	}
	f.refused(f.swap(insert(f.row(key("k"))))[0], r)
}
