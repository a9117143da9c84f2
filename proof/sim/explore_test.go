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
	whole   = flag.Bool("whole", false, "TestExplore explores the large scopes, too; it takes hours")
	wayFlag = flag.String("way", "", "the way in its scope that TestExplore tells")
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
	comeBack   = []event.Kind{created, removed, created}
)

// scopes are explored by every run of the tests. With -short those marked short are: a
// twentieth of all states.
var scopes = []scope{
	{name: "publishing-fine", kind: publishing, trusted: true, changes: overwrite, fine: true, short: true},
	{name: "publishing-fine-crash", kind: publishing, trusted: true, changes: once, crashes: 1, fine: true},
	{name: "publishing-fine-stall", kind: publishing, trusted: true, changes: once, stalls: 1, fine: true},
	{name: "publishing-3", kind: publishing, trusted: true, changes: endRemoved, short: true},
	{name: "publishing-come-back", kind: publishing, trusted: true, changes: comeBack},
	{name: "publishing-crash", kind: publishing, trusted: true, changes: overwrite, crashes: 1},
	{name: "publishing-crashes", kind: publishing, trusted: true, changes: once, crashes: 2},
	{name: "publishing-crash-stall", kind: publishing, trusted: true, changes: once, crashes: 1, stalls: 1},
	{name: "untrusted-3", kind: publishing, changes: comeBack},
	{name: "untrusted-crash", kind: publishing, changes: remove, crashes: 1},
	{name: "acting-3", kind: acting, trusted: true, changes: endRemoved, short: true},
	{name: "acting-crash", kind: acting, trusted: true, changes: overwrite, crashes: 1},
	{name: "acting-crash-stall", kind: acting, trusted: true, changes: once, crashes: 1, stalls: 1, short: true},
	{name: "trusting-3", kind: trusting, trusted: true, changes: comeBack},
	{name: "trusting-crash", kind: trusting, trusted: true, changes: overwrite, crashes: 1},
	{name: "publishing-stall", kind: publishing, trusted: true, changes: overwrite, stalls: 1},
}

// large scopes are explored with -whole.
var large = []scope{
	{name: "publishing-3-crash", kind: publishing, trusted: true, changes: endRemoved, crashes: 1},
	{name: "publishing-come-back-crash", kind: publishing, trusted: true, changes: comeBack, crashes: 1},
	{name: "publishing-2-crashes", kind: publishing, trusted: true, changes: overwrite, crashes: 2},
	{name: "acting-3-crash", kind: acting, trusted: true, changes: comeBack, crashes: 1},
	{name: "trusting-3-crash", kind: trusting, trusted: true, changes: comeBack, crashes: 1},
	{name: "publishing-3-stall", kind: publishing, trusted: true, changes: endRemoved, stalls: 1},
	{name: "publishing-3-crashes", kind: publishing, trusted: true, changes: endRemoved, crashes: 2},
	{name: "acting-3-crashes", kind: acting, trusted: true, changes: endRemoved, crashes: 2},
}

// TestExplore goes through all that can happen in small worlds: every order in
// which what is pending can happen, every moment in which a process can crash.
// The invariants hold in every state, and from every state there is a way to
// rest.
func TestExplore(t *testing.T) {
	all := scopes
	if *whole || *wayFlag != "" {
		all = slices.Concat(scopes, large)
	}
	for i := range all {
		if testing.Short() && !all[i].short {
			continue
		}
		t.Run(all[i].name, func(t *testing.T) {
			if *wayFlag != "" {
				all[i].tell(t)
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
			t.Error("no way leads to rest")
		}
		if n := x.restless(); n > 0 {
			t.Errorf("from %d states no way leads to rest", n)
		}
		pairs.follow(t, s)
		return
	}
	short, violations, story := s.explain(x.failed)
	for _, v := range violations {
		t.Errorf("%s (%s): %s", v.Invariant, v.Invariant.Says(), v.What)
	}
	t.Fatalf("repeat it with: go test ./proof/sim -run '%s$' -way %s\n%s", t.Name(), simkit.EncodeTape(short), strings.Join(story, "\n"))
}

// tell tells what happens on the way of the command line.
func (s *scope) tell(t *testing.T) {
	way, err := simkit.DecodeTape(*wayFlag)
	if err != nil {
		t.Fatal(err)
	}
	pool := newThreads()
	defer pool.Close()
	var story []string
	_, violations := s.live(pool, way, &story)
	t.Log("\n" + strings.Join(story, "\n"))
	for _, v := range violations {
		t.Errorf("%s (%s): %s", v.Invariant, v.Invariant.Says(), v.What)
	}
}
