package ledger_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

func drawText() *rapid.Generator[string] {
	return rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]byte("a&=%+ 1\"\xff\n")), 0, 3), func(b []byte) string { return string(b) })
}

func drawIdentity() *rapid.Generator[ledger.Identity] {
	return rapid.Custom(func(t *rapid.T) ledger.Identity {
		i := ledger.Identity{
			ETag: drawText().Draw(t, "etag"),
			Meta: rapid.StringMatching("[0-9a-f]{0,2}").Draw(t, "meta"),
			Size: rapid.Int64Range(0, 2).Draw(t, "size"),
		}
		if rapid.Bool().Draw(t, "versioned") {
			i.VersionID = drawText().Draw(t, "version")
		}
		if rapid.Bool().Draw(t, "dated") {
			i.ModTime = epoch.Add(time.Duration(rapid.IntRange(0, 1).Draw(t, "mtime")) * time.Second)
		}
		return i
	})
}

func TestIdentityText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		i, j := drawIdentity().Draw(t, "i"), drawIdentity().Draw(t, "j")
		if same, text := i.Same(j), i.String() == j.String(); same != text {
			t.Fatalf("same %v, and texts %q and %q", same, i, j)
		}
		if !i.Same(i) || i.Same(j) != j.Same(i) {
			t.Fatal("not an equivalence")
		}
		for _, c := range []byte(i.String()) {
			if c <= ' ' || c > '~' {
				t.Fatalf("%q has byte %#x, which metadata may not hold", i, c)
			}
		}
	})
}

func TestIdentitySame(t *testing.T) {
	base := ledger.Identity{ETag: "e", ModTime: epoch, Meta: "m", Size: 1}
	edit := func(f func(*ledger.Identity)) ledger.Identity {
		i := base
		f(&i)
		return i
	}
	versioned := edit(func(i *ledger.Identity) { i.VersionID = "v" })
	for _, test := range []struct {
		name string
		i, j ledger.Identity
		same bool
	}{
		{"itself", base, base, true},
		{"another zone", base, edit(func(i *ledger.Identity) { i.ModTime = epoch.In(time.FixedZone("", 3600)) }), true},
		{"ETag", base, edit(func(i *ledger.Identity) { i.ETag = "f" }), false},
		{"time", base, edit(func(i *ledger.Identity) { i.ModTime = epoch.Add(time.Second) }), false},
		{"metadata", base, edit(func(i *ledger.Identity) { i.Meta = "n" }), false},
		{"size", base, edit(func(i *ledger.Identity) { i.Size = 2 }), false},
		{"one version", versioned, ledger.Identity{VersionID: "v"}, true},
		{"two versions", versioned, edit(func(i *ledger.Identity) { i.VersionID = "w" }), false},
		{"version and none", versioned, base, false},
	} {
		if test.i.Same(test.j) != test.same || test.j.Same(test.i) != test.same {
			t.Errorf("%s: want %v", test.name, test.same)
		}
	}
}

func TestCompatibleWith(t *testing.T) {
	seen := ledger.Identity{ETag: "e", ModTime: epoch, Meta: "m", Size: 7}
	versioned := seen
	versioned.VersionID = "v"
	edit := func(f func(*ledger.Identity)) ledger.Identity {
		i := seen
		f(&i)
		return i
	}
	for _, test := range []struct {
		name string
		i    ledger.Identity
		seen ledger.Identity
		fits bool
	}{
		{"the same look", seen, seen, true},
		{"another zone", edit(func(i *ledger.Identity) { i.ModTime = epoch.In(time.FixedZone("", 3600)) }), seen, true},
		{"look, other ETag", edit(func(i *ledger.Identity) { i.ETag = "f" }), seen, false},
		{"look, other time", edit(func(i *ledger.Identity) { i.ModTime = epoch.Add(time.Second) }), seen, false},
		{"look, other metadata", edit(func(i *ledger.Identity) { i.Meta = "n" }), seen, false},
		{"look, other size", edit(func(i *ledger.Identity) { i.Size = 8 }), seen, false},
		{"look, was empty", ledger.Identity{ETag: "d", ModTime: epoch, Meta: "m"}, seen, false},
		{"look, versioning switched on since, and nothing written", seen, versioned, true},
		{"look, versioning switched on since, and rewritten", edit(func(i *ledger.Identity) { i.ModTime = epoch.Add(-time.Hour) }), versioned, false},
		{"event", ledger.Identity{ETag: "e", Size: 7}, seen, true},
		{"event, other ETag", ledger.Identity{ETag: "f", Size: 7}, seen, false},
		{"event, other size", ledger.Identity{ETag: "e", Size: 8}, seen, false},
		{"event without a size", ledger.Identity{ETag: "e"}, seen, true},
		{"event without an ETag", ledger.Identity{Size: 7}, seen, true},
		{"event without an ETag, other size", ledger.Identity{Size: 8}, seen, false},
		{"event without an ETag, now empty", ledger.Identity{Size: 8}, ledger.Identity{ETag: "d", ModTime: epoch, Meta: "m"}, false},
		{"event with an ETag, HEAD without one", ledger.Identity{ETag: "e", Size: 7}, ledger.Identity{ModTime: epoch, Meta: "m", Size: 7}, false},
		{"event that names nothing", ledger.Identity{}, seen, true},
		{"event, one version", ledger.Identity{VersionID: "v"}, versioned, true},
		{"event, one version and another ETag", ledger.Identity{VersionID: "v", ETag: "f", Size: 8}, versioned, true},
		{"event, other version of one content", ledger.Identity{VersionID: "w", ETag: "e", Size: 7}, versioned, false},
		{"event with a version, look without", ledger.Identity{VersionID: "v", ETag: "e", Size: 7}, seen, true},
		{"event with a version, look without, other ETag", ledger.Identity{VersionID: "v", ETag: "f", Size: 7}, seen, false},
		{"event without a version, look with", ledger.Identity{ETag: "f", Size: 7}, versioned, false},
	} {
		if got := test.i.CompatibleWith(test.seen); got != test.fits {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

func TestIdempotencyKey(t *testing.T) {
	type effect struct {
		key  ledger.RowKey
		kind event.Kind
		id   ledger.Identity
		have uint64 // before a removal
	}
	draw := rapid.Custom(func(t *rapid.T) effect {
		e := effect{key: drawRowKey().Draw(t, "key"), kind: rapid.SampledFrom([]event.Kind{event.Created, event.Removed}).Draw(t, "kind")}
		if e.kind == event.Created {
			e.id = drawIdentity().Draw(t, "identity")
		} else {
			e.have = rapid.Uint64Range(1, 3).Draw(t, "have")
		}
		return e
	})
	attempt := func(t *rapid.T, e effect) string {
		a := &ledger.Claim{
			Key: e.key, Have: ledger.Version{Generation: e.have}, Want: ledger.Version{Generation: rapid.Uint64Range(4, 6).Draw(t, "want")},
			Fence: rapid.Int64().Draw(t, "fence"), Number: rapid.IntRange(1, 8).Draw(t, "number"),
			Doubt:     rapid.Bool().Draw(t, "doubt"),
			TakenOver: rapid.Bool().Draw(t, "taken over"), Verifying: rapid.Bool().Draw(t, "verifying"),
		}
		return a.IdempotencyKey(&ledger.Read{Kind: e.kind, Identity: e.id})
	}
	rapid.Check(t, func(t *rapid.T) {
		e, f := draw.Draw(t, "one"), draw.Draw(t, "other")
		if rapid.Bool().Draw(t, "of one object") {
			f.key = e.key
		}
		key := attempt(t, e)
		if again := attempt(t, e); again != key {
			t.Fatalf("two attempts have keys %s and %s", key, again)
		}
		same := e.key == f.key && e.kind == f.kind && e.have == f.have && e.id.Same(f.id)
		if (attempt(t, f) == key) != same {
			t.Fatalf("one effect: %v, and keys %s and %s", same, key, attempt(t, f))
		}
	})
}

func TestVersionCompare(t *testing.T) {
	v := func(seq string, gen uint64) ledger.Version {
		s, err := event.ParseSequencer(seq)
		if err != nil {
			t.Fatal(err)
		}
		return ledger.Version{Sequencer: s, Generation: gen}
	}
	ordered := []ledger.Version{v("", 0), v("", 1), v("", 9), v("00", 0), v("0055", 0), v("0055", 7), v("0056", 0), v("0056", 1), v("1", 0)}
	for i, a := range ordered {
		for j, b := range ordered {
			want := 0
			if i != j {
				want = map[bool]int{true: -1, false: 1}[i < j]
			}
			if got := a.Compare(b); got != want {
				t.Errorf("%s to %s: %d, want %d", a.Order(), b.Order(), got, want)
			}
		}
	}
}
