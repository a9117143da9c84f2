package sim

import (
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/simkit"
)

var (
	whole    = flag.Bool("whole", false, "TestExplore explores the large scopes, too; it takes hours")
	pathFlag = flag.String("path", "", "path whose trace TestExplore logs")
)

const (
	created = event.Created
	removed = event.Removed
)

var (
	once       = []event.Kind{created}
	overwrite  = []event.Kind{created, created}
	remove     = []event.Kind{created, removed}
	endRemoved = []event.Kind{created, created, removed}
	recreate   = []event.Kind{created, removed, created}
)

// With -short only scopes marked short are explored, which have a twentieth of all states.
var scopes = []scope{
	{name: "publishing-fine", kind: publishing, trusted: true, changes: overwrite, fineGrained: true, short: true},
	{name: "publishing-fine-crash", kind: publishing, trusted: true, changes: once, crashes: 1, fineGrained: true},
	{name: "publishing-fine-stall", kind: publishing, trusted: true, changes: once, stalls: 1, fineGrained: true},
	{name: "publishing-3", kind: publishing, trusted: true, changes: endRemoved, short: true},
	{name: "publishing-come-back", kind: publishing, trusted: true, changes: recreate},
	{name: "publishing-crash", kind: publishing, trusted: true, changes: overwrite, crashes: 1},
	{name: "publishing-crashes", kind: publishing, trusted: true, changes: once, crashes: 2},
	{name: "publishing-crash-stall", kind: publishing, trusted: true, changes: once, crashes: 1, stalls: 1},
	{name: "untrusted-3", kind: publishing, changes: recreate},
	{name: "untrusted-crash", kind: publishing, changes: remove, crashes: 1},
	{name: "acting-3", kind: acting, trusted: true, changes: endRemoved, short: true},
	{name: "acting-crash", kind: acting, trusted: true, changes: overwrite, crashes: 1},
	{name: "acting-crash-stall", kind: acting, trusted: true, changes: once, crashes: 1, stalls: 1, short: true},
	{name: "trusting-3", kind: trusting, trusted: true, changes: recreate},
	{name: "trusting-crash", kind: trusting, trusted: true, changes: overwrite, crashes: 1},
	{name: "publishing-stall", kind: publishing, trusted: true, changes: overwrite, stalls: 1},
}

// largeScopes are explored with -whole.
var largeScopes = []scope{
	{name: "publishing-3-crash", kind: publishing, trusted: true, changes: endRemoved, crashes: 1},
	{name: "publishing-come-back-crash", kind: publishing, trusted: true, changes: recreate, crashes: 1},
	{name: "publishing-2-crashes", kind: publishing, trusted: true, changes: overwrite, crashes: 2},
	{name: "acting-3-crash", kind: acting, trusted: true, changes: recreate, crashes: 1},
	{name: "trusting-3-crash", kind: trusting, trusted: true, changes: recreate, crashes: 1},
	{name: "publishing-3-stall", kind: publishing, trusted: true, changes: endRemoved, stalls: 1},
	{name: "publishing-3-crashes", kind: publishing, trusted: true, changes: endRemoved, crashes: 2},
	{name: "acting-3-crashes", kind: acting, trusted: true, changes: endRemoved, crashes: 2},
}

// TestExplore tries every order of pending events, and a crash at every moment. The invariants hold
// in every state, and every state can reach rest.
func TestExplore(t *testing.T) {
	all := scopes
	if *whole || *pathFlag != "" {
		all = slices.Concat(scopes, largeScopes)
	}
	for i := range all {
		if testing.Short() && !all[i].short {
			continue
		}
		t.Run(all[i].name, func(t *testing.T) {
			if *pathFlag != "" {
				all[i].logPath(t)
				return
			}
			all[i].test(t)
		})
	}
}

func (s *scope) test(t *testing.T) {
	start, pairs := time.Now(), newPairs(firstSeed(t))
	x := s.explore(t.Context(), pairs.arrive)
	t.Logf("%d states, %d transitions, %d ends, at most %d steps, %v", len(x.states), len(x.edges), len(x.ends), x.depth, time.Since(start).Round(time.Millisecond))
	if x.failed == nil {
		if len(x.ends) == 0 {
			t.Error("no path leads to rest")
		}
		if n := x.cannotSettle(); n > 0 {
			t.Errorf("from %d states no path leads to rest", n)
		}
		pairs.check(t, s)
		return
	}
	short, violations, trace := s.shorten(x.failed)
	for _, v := range violations {
		t.Errorf("%s (%s): %s", v.Invariant, v.Invariant.Description(), v.Detail)
	}
	t.Fatalf("repeat it with: go test ./proof/sim -run '%s$' -path %s\n%s", t.Name(), simkit.EncodeTape(short), strings.Join(trace, "\n"))
}

func (s *scope) logPath(t *testing.T) {
	path, err := simkit.DecodeTape(*pathFlag)
	if err != nil {
		t.Fatal(err)
	}
	pool := newThreads()
	defer pool.Close()
	var trace []string
	_, violations := s.runPath(pool, path, &trace)
	t.Log("\n" + strings.Join(trace, "\n"))
	for _, v := range violations {
		t.Errorf("%s (%s): %s", v.Invariant, v.Invariant.Description(), v.Detail)
	}
}
