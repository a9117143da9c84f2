package store_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawlhq/pawl/store"
)

func TestJoin(t *testing.T) {
	part := rapid.Custom(func(t *rapid.T) string {
		return string(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 2, 'a', 0xfe, 0xff}), 0, 4).Draw(t, "part"))
	})
	rapid.Check(t, func(t *rapid.T) {
		tuple := rapid.SliceOfN(part, 1, 3)
		a, b := tuple.Draw(t, "a"), tuple.Draw(t, "b")
		if got, want := strings.Compare(store.Join(a...), store.Join(b...)), slices.Compare(a, b); got != want {
			t.Errorf("%q and %q compare as %d, want %d", a, b, got, want)
		}
		if got, err := store.Split(store.Join(a...)); err != nil || !slices.Equal(got, a) {
			t.Errorf("%q became %q, error %v", a, got, err)
		}
	})
	for _, name := range []string{"\x00", "a\x00", "\x00a", "\x00\x02", "a\x00\x01\x00"} {
		if parts, err := store.Split(name); err == nil {
			t.Errorf("Split(%q) = %q, want an error", name, parts)
		}
	}
}

func TestEnd(t *testing.T) {
	for prefix, want := range map[string]string{"": "", "a": "b", "a\xff": "b", "\xff\xff": "", "a\xff\xfe\xff": "a\xff\xff", "\x00": "\x01", "é": "\xc3\xaa"} {
		if got := store.End(prefix); got != want {
			t.Errorf("End(%q) = %q, want %q", prefix, got, want)
		}
	}
}

func TestCheckAll(t *testing.T) {
	traits := store.Traits{Apply: 1, Name: 10, Body: 10}
	good := store.Change{Key: store.Key{Space: "s", Name: "n"}, Next: &store.Record{Key: store.Key{Space: "s", Name: "n"}, Nonce: store.Nonce{1}}}
	if err := traits.CheckAll([]store.Change{good}); err != nil {
		t.Error(err)
	}
	for _, changes := range [][]store.Change{{good, good}, {{}}} {
		if err := traits.CheckAll(changes); !errors.Is(err, store.ErrRejected) {
			t.Errorf("%+v: error %v, want ErrRejected", changes, err)
		}
	}
}
