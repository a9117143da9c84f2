//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/action"
	"github.com/pawlhq/pawl/event"
)

// receiver is a service that a pipeline without an output tells of each object.
// It takes a little time before the effect, sometimes more, and after it, and
// writes down every one, in the order in which they came about. A request whose
// sender was killed meanwhile has its effect all the same, perhaps after that of
// whoever took over.
type receiver struct {
	url string

	mu        sync.Mutex
	rng       *rand.Rand
	clock     int
	effects   []*effect
	malformed []string
}

// effect is one request that was obeyed. Its times are those of the receiver's
// own clock, which counts what happens there.
type effect struct {
	action.Facts
	at                          time.Time // of its arrival, for people
	arrived, happened, answered int
}

func newReceiver(t *testing.T, seed uint64) *receiver {
	r := &receiver{rng: rand.New(rand.NewPCG(seed, 2))}
	srv := httptest.NewServer(http.HandlerFunc(r.handle))
	t.Cleanup(srv.Close)
	r.url = srv.URL
	return r
}

func (r *receiver) handle(w http.ResponseWriter, req *http.Request) {
	e := &effect{}
	err := json.NewDecoder(req.Body).Decode(&e.Facts)
	before, after := r.arrive(e, req.Header, err)
	<-time.After(before)
	r.tick(func() {
		e.happened = r.clock
		r.effects = append(r.effects, e)
	})
	<-time.After(after)
	r.tick(func() { e.answered = r.clock })
	w.WriteHeader(http.StatusOK)
}

func (r *receiver) arrive(e *effect, h http.Header, err error) (before, after time.Duration) {
	const usual, slow = int64(80 * time.Millisecond), int64(2500 * time.Millisecond)
	r.tick(func() {
		e.at, e.arrived = time.Now(), r.clock
		before, after = time.Duration(r.rng.Int64N(usual)), time.Duration(r.rng.Int64N(usual))
		if r.rng.IntN(50) == 0 {
			before = time.Duration(r.rng.Int64N(slow))
		}
		if err != nil || h.Get("Idempotency-Key") != e.IdempotencyKey || h.Get("Pawl-Fence") != fmt.Sprint(e.Fence) {
			r.malformed = append(r.malformed, fmt.Sprintf("a request that is none: %v, %+v, %v", err, e.Facts, h))
		}
	})
	return before, after
}

func (r *receiver) tick(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clock++
	f()
}

// byKey returns the effects about each object.
func (r *receiver) byKey() map[string][]*effect {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string][]*effect{}
	for _, e := range r.effects {
		all[e.Key] = append(all[e.Key], e)
	}
	return all
}

func (e *effect) String() string {
	return fmt.Sprintf("%s %s by fence %d at %s", e.Kind, e.ETag, e.Fence, e.at.Format("15:04:05.000"))
}

// same reports that two effects are of one version of their object.
func (e *effect) same(o *effect) bool { return e.Kind == o.Kind && e.ETag == o.ETag }

// effectViolations compares the effects about one object with what the ledger says of it,
// and with its contents in the order in which they were put. That is what is
// promised of an effect that the store cannot fence:
//
//   - There is no effect without a claim, and one at most for each.
//   - Behind each attempt that was completed stands its effect, of the version
//     that was committed.
//   - A completed effect is over before any of a higher fence arrives: whatever
//     comes about late, or at the same time, is of an attempt that lost its lease.
//   - In the order of the fences, versions do not go back.
//   - A version's effect comes about again only after an attempt of unknown
//     result.
func effectViolations(l *rowHistory, effects []*effect, puts []string) (bad []string) {
	complain := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	byFence := map[int64]*effect{}
	for _, e := range effects {
		if byFence[e.Fence] != nil {
			complain("%s, twice in one attempt", e)
		}
		byFence[e.Fence] = e
		a := l.byFence(e.Fence)
		if a == nil {
			complain("%s, which was never granted", e)
			continue
		}
		for _, o := range effects {
			if a.completed() && o.Fence > e.Fence && o.arrived < e.answered {
				complain("%s arrived before %s was over", o, e)
			}
		}
	}
	for _, a := range l.attempts {
		e := byFence[a.fence]
		switch {
		case a.committedEffect() && (e == nil || e.answered == 0):
			complain("fence %d was completed without its effect", a.fence)
		case a.committedEffect() && (e.Kind != a.have.Kind || e.Kind == event.Created && e.ETag != a.have.Identity.ETag):
			complain("%s, and committed was %s %s", e, a.have.Kind, a.have.Identity.ETag)
		case a.outcome == "nothing to do" && e != nil:
			complain("%s, where nothing was to do", e)
		}
	}
	byOrder := slices.SortedFunc(slices.Values(effects), func(a, b *effect) int { return int(a.Fence - b.Fence) })
	return append(bad, orderViolations(l, byOrder, puts)...)
}

// orderViolations looks at effects in the order of their fences.
func orderViolations(l *rowHistory, effects []*effect, puts []string) (bad []string) {
	newest := -1
	for i, e := range effects {
		if e.Kind == event.Created {
			n := slices.Index(puts, e.ETag)
			if n < newest {
				bad = append(bad, fmt.Sprintf("%s is content %d, and content %d had been seen before", e, n, newest))
			}
			newest = n
		}
		if i > 0 && e.same(effects[i-1]) && !hasUnknownResult(l, effects[i-1].Fence, e.Fence) {
			bad = append(bad, fmt.Sprintf("%s, and again by fence %d, with no attempt of unknown result between", effects[i-1], e.Fence))
		}
	}
	return bad
}

// hasUnknownResult reports that among the attempts from one fence on, and before
// another, is one of unknown result.
func hasUnknownResult(l *rowHistory, from, before int64) bool {
	return slices.ContainsFunc(l.attempts, func(a *attempt) bool { return from <= a.fence && a.fence < before && a.unknown })
}

// fencingReceiver is a service that does as the documentation says: it refuses a fence
// below the highest of the object, and an idempotency key that it has acted upon.
// It returns what it acts upon, and how many effects it refused for each reason.
func fencingReceiver(effects []*effect) (acts []*effect, late, known int) {
	var highest int64
	acted := map[string]bool{}
	for _, e := range effects {
		switch {
		case e.Fence < highest:
			late++
		case acted[e.IdempotencyKey]:
			known++
		default:
			acts = append(acts, e)
			acted[e.IdempotencyKey] = true
		}
		highest = max(highest, e.Fence)
	}
	return acts, late, known
}
