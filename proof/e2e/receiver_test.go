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

// receiver waits a random time before and after the effect. A request whose sender was killed still has its
// effect, possibly after that of the next lease holder.
type receiver struct {
	url string

	mu        sync.Mutex
	rng       *rand.Rand
	clock     int
	effects   []*effect
	malformed []string
}

// Times of an effect are ticks of the receiver's event counter.
type effect struct {
	action.Facts
	at                          time.Time
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
			r.malformed = append(r.malformed, fmt.Sprintf("malformed request: %v, %+v, %v", err, e.Facts, h))
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

func (e *effect) same(o *effect) bool { return e.Kind == o.Kind && e.ETag == o.ETag }

// effectViolations compares the effects on one object with its row's history, and with its contents in the
// order of their PUTs. For an effect that the store cannot fence, Pawl guarantees:
//
//   - Every effect has a claim, and every claim at most one effect.
//   - Every completed attempt had its effect, on the committed version.
//   - A completed effect ends before an effect of a higher fence arrives. Only attempts that lost their
//     lease have late or concurrent effects.
//   - In the order of fences, versions do not go back.
//   - The effect of a version repeats only after an attempt of unknown result.
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
				complain("%s arrived before %s had ended", o, e)
			}
		}
	}
	for _, a := range l.attempts {
		e := byFence[a.fence]
		switch {
		case a.committedEffect() && (e == nil || e.answered == 0):
			complain("fence %d was completed without its effect", a.fence)
		case a.committedEffect() && (e.Kind != a.have.Kind || e.Kind == event.Created && e.ETag != a.have.Identity.ETag):
			complain("%s, but %s %s was committed", e, a.have.Kind, a.have.Identity.ETag)
		case a.outcome == "nothing to do" && e != nil:
			complain("%s, but there was nothing to do", e)
		}
	}
	byOrder := slices.SortedFunc(slices.Values(effects), func(a, b *effect) int { return int(a.Fence - b.Fence) })
	return append(bad, orderViolations(l, byOrder, puts)...)
}

func orderViolations(l *rowHistory, effects []*effect, puts []string) (bad []string) {
	newest := -1
	for i, e := range effects {
		if e.Kind == event.Created {
			n := slices.Index(puts, e.ETag)
			if n < newest {
				bad = append(bad, fmt.Sprintf("%s is content %d, after content %d", e, n, newest))
			}
			newest = n
		}
		if i > 0 && e.same(effects[i-1]) && !hasUnknownResult(l, effects[i-1].Fence, e.Fence) {
			bad = append(bad, fmt.Sprintf("%s, and again by fence %d, with no attempt of unknown result between", effects[i-1], e.Fence))
		}
	}
	return bad
}

// hasUnknownResult excludes the fence before.
func hasUnknownResult(l *rowHistory, from, before int64) bool {
	return slices.ContainsFunc(l.attempts, func(a *attempt) bool { return from <= a.fence && a.fence < before && a.unknown })
}

// fencingReceiver rejects fences below the object's highest, and idempotency keys that it has processed, as
// the documentation advises.
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
