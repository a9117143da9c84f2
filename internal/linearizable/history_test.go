package linearizable

import (
	"strings"
	"testing"
	"time"
)

type call struct {
	from, to time.Duration
	op       Op
}

var histories = []struct {
	name  string
	calls []call
	legal bool
}{
	{"sequential calls", []call{
		{0, 1, Read("")},
		{2, 3, Applied("", "a")},
		{4, 5, Read("a")},
		{6, 7, Refused("", "x", "a")},
		{8, 9, RefusedBySome("b", "x")},
		{10, 11, Applied("a", "")},
		{12, 13, Gone("a")},
		{14, 15, Applied("", "b")},
		{16, 17, Removed()},
		{18, 19, Read("")},
	}, true},
	{"a read returns a concurrent write", []call{{0, 9, Applied("", "a")}, {1, 2, Read("a")}, {3, 4, Read("a")}}, true},
	{"a read does not return a concurrent write", []call{{0, 9, Applied("", "a")}, {1, 2, Read("")}}, true},
	{"a read returns the old value after another read returned the new one", []call{{0, 9, Applied("", "a")}, {1, 2, Read("a")}, {3, 4, Read("")}}, false},
	{"stale read", []call{{0, 1, Applied("", "a")}, {2, 3, Read("")}}, false},
	{"a read returns a value without a write", []call{{0, 1, Read("a")}}, false},
	{"two writes replaced the same value", []call{{0, 9, Applied("", "a")}, {0, 9, Applied("", "b")}}, false},
	{"lost write", []call{{0, 1, Applied("", "a")}, {2, 3, Applied("", "b")}}, false},
	{"refused because of the expected value", []call{{0, 1, Applied("", "a")}, {2, 3, Refused("a", "x", "a")}}, false},
	{"refused because of another value than the current one", []call{{0, 1, Applied("", "a")}, {2, 3, Refused("", "x", "b")}}, false},
	{"refused because of its own value", []call{{0, openEnd, Unknown("", "a")}, {0, 1, Refused("", "a", "a")}}, false},
	{"refused removal of a missing value", []call{{0, 1, Refused("a", "", "")}}, true},
	{"refused although the register has the expected value", []call{{0, 1, RefusedBySome("", "x")}}, false},
	{"gone although the register has another value", []call{{0, 1, Applied("", "a")}, {2, 3, Gone("b")}}, false},
	{"unknown, and it took effect", []call{{0, openEnd, Unknown("", "a")}, {2, 3, Read("a")}}, true},
	{"unknown, and it took effect within the call", []call{{0, openEnd, Unknown("", "a")}, {0, 9, Refused("", "x", "a")}}, true},
	{"unknown, and it took effect late", []call{{0, openEnd, Unknown("", "a")}, {2, 3, Read("")}, {4, 5, Read("a")}}, true},
	{"unknown, and it never took effect", []call{{0, openEnd, Unknown("", "a")}, {2, 3, Read("")}, {4, 5, Applied("", "b")}}, true},
	{"unknown, and it took effect twice", []call{
		{0, openEnd, Unknown("", "a")}, {2, 3, Read("a")}, {4, 5, Removed()}, {6, 7, Read("a")},
	}, false},
	{"unknown, and it took effect before it was called", []call{{0, 1, Read("a")}, {2, openEnd, Unknown("", "a")}}, false},
	{"unknown, and it took effect although the register had another value", []call{
		{0, 1, Applied("", "a")}, {2, openEnd, Unknown("", "b")}, {4, 5, Read("b")},
	}, false},
}

func TestCheck(t *testing.T) {
	for _, tc := range histories {
		t.Run(tc.name, func(t *testing.T) {
			h := New()
			for i, c := range tc.calls {
				h.Add(i, "k", c.from, c.to, c.op)
			}
			h.Add(0, "another", 0, 1, Read("")) // registers are independent
			if err := h.Check(); (err == nil) != tc.legal {
				t.Errorf("legal %t, want %t: %v", err == nil, tc.legal, err)
			}
		})
	}
}

func TestErrorListsCalls(t *testing.T) {
	h := New()
	h.Add(2, "k", 20, 30, Read(""))
	h.Add(1, "k", 10, 15, Applied("", "a"))
	h.Add(3, "k", 40, openEnd, Unknown("a", "b"))
	got := h.Check().Error()
	want := `register k: its 3 calls have no valid order; the longest valid order ends before the first call without a number:
  1          10ns to         15ns  client 1: replace nothing with a: applied
  -          20ns to         30ns  client 2: read nothing
  -          40ns to        never  client 3: replace a with b: unknown
`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestCheckTimesOut(t *testing.T) {
	h := New()
	for range 40 {
		h.Add(0, "k", 0, openEnd, Unknown("", "a"))
		h.Add(0, "k", 0, openEnd, Unknown("a", ""))
	}
	h.Add(1, "k", 1, 2, Read("never written"))
	err := h.check(time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "the check of 81 calls did not end") {
		t.Errorf("Check = %v", err)
	}
}

func TestSeed(t *testing.T) {
	t.Setenv("PAWL_SEED", "17")
	if got := Seed(t); got != 17 {
		t.Errorf("seed %d", got)
	}
	want := "repeat with: PAWL_SEED=17 go test github.com/pawlhq/pawl/internal/linearizable -run '^TestSeed$'"
	if got := Repeat(t, 17); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
