//go:build unix

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl/ledger"
)

// life is all that ever stood in one row of the ledger, and what was wrong with
// it. These hold for every write, whoever made it:
//
//   - Want, Have and the fence never go back, and no row is deleted.
//   - A lease is granted where there is none, with a fence higher than all
//     before, or else taken over, no sooner than it expires.
//   - An attempt ends in the ledger only while the lease is its own. A completed
//     one commits what was wanted when it was claimed.
//   - A version is committed once, and again only to verify it.
//   - The effect of a version is committed once, and again only after an attempt
//     of unknown result; an output also where a verification found it wrong.
type life struct {
	key      ledger.RowKey
	output   bool           // the pipeline has one
	row      ledger.Row     // as last written
	notes    []ledger.Entry // oldest first: a row itself keeps but the last
	attempts []*attempt     // in the order of their claims
	wrong    []string
}

// attempt is a claim and its end.
type attempt struct {
	fence     int64
	owner     string
	at        time.Time
	want      ledger.Version
	verifying bool // VerifyAt had passed, or had when the claim was made that this one took over

	end  string // "": it has not ended
	have ledger.Version
	// unknown: it may have had an effect, and nobody has written down whether.
	unknown bool
	// unsure: it was completed, and a copy of its write may still be on its way.
	unsure bool
}

// running is the attempt that holds the lease, or nil.
func (l *life) running() *attempt {
	if n := len(l.attempts); n > 0 && l.attempts[n-1].end == "" {
		return l.attempts[n-1]
	}
	return nil
}

// byFence finds an attempt, or nil.
func (l *life) byFence(fence int64) *attempt {
	for _, a := range l.attempts {
		if a.fence == fence {
			return a
		}
	}
	return nil
}

// busy is 1 for a row that is not at rest, and else 0.
func (l *life) busy() int64 {
	if l.row.Settled() && !l.row.Held() {
		return 0
	}
	return 1
}

func (l *life) complain(format string, args ...any) {
	l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
}

// deleted takes note of what may not happen: removals are kept for longer than
// any test.
func (l *life) deleted() { l.complain("the row was deleted") }

// written takes note of the row's next state.
func (l *life) written(next ledger.Row) {
	prev := l.row
	switch {
	case next.Want.Compare(prev.Want) < 0:
		l.complain("want went back from %s to %s", prev.Want.Order(), next.Want.Order())
	case next.Have.Compare(prev.Have) < 0:
		l.complain("have went back from %s to %s", prev.Have.Order(), next.Have.Order())
	case next.Have.Compare(next.Want) > 0:
		l.complain("have %s is more than want %s", next.Have.Order(), next.Want.Order())
	case next.Lease.Fence < prev.Lease.Fence:
		l.complain("the fence went back from %d to %d", prev.Lease.Fence, next.Lease.Fence)
	}
	for _, e := range news(prev.History, next.History) {
		l.notes = append(l.notes, e)
		l.follow(e, &prev, &next)
	}
	switch a := l.running(); {
	case next.Held() != (a != nil):
		l.complain("held by %q, and the attempt under way is %+v", next.Lease.Owner, a)
	case a != nil && (a.fence != next.Lease.Fence || a.owner != next.Lease.Owner):
		l.complain("held by %q with fence %d, and claimed by %q with %d", next.Lease.Owner, next.Lease.Fence, a.owner, a.fence)
	case next.Have.Compare(prev.Have) != 0 && !l.ended(next.Have):
		l.complain("have became %s without a completion", next.Have.Order())
	}
	l.row = next
}

// ended reports that the last attempt to end, or the one before it, committed v.
func (l *life) ended(v ledger.Version) bool {
	for i := len(l.attempts) - 1; i >= 0 && i >= len(l.attempts)-2; i-- {
		if a := l.attempts[i]; a.completed() && a.have.Compare(v) == 0 {
			return true
		}
	}
	return false
}

func (a *attempt) completed() bool { return a.end == "completed" || a.end == "nothing to do" }

// acted: it had an effect, and that is committed.
func (a *attempt) acted() bool { return a.end == "completed" }

// news returns the entries of a history that were not in the last one, oldest
// first.
func news(old, now []ledger.Entry) (fresh []ledger.Entry) {
	for len(now) > 0 && !continues(now, old) {
		fresh = append([]ledger.Entry{now[0]}, fresh...)
		now = now[1:]
	}
	return fresh
}

// continues reports that a history is the beginning of another.
func continues(now, old []ledger.Entry) bool {
	if len(now) > len(old) {
		return false
	}
	for i, e := range now {
		if o := old[i]; !e.At.Equal(o.At) || e.What != o.What || e.Note != o.Note {
			return false
		}
	}
	return true
}

// follow goes from one entry of the history to the next. A write may hold
// several: events, the end of one attempt and the claim of another, in this
// order.
func (l *life) follow(e ledger.Entry, prev, next *ledger.Row) {
	a := l.running()
	switch e.What {
	case "claimed", "taken over":
		l.claimed(e, a, prev, next)
	case "completed", "nothing to do":
		l.completed(e, a, next)
	case "failed", "released", "dead":
		if a == nil {
			l.complain("%s without a lease", e.What)
			return
		}
		a.end = e.What
		a.unknown = next.Doubt || next.Forced
	case "raised", "suspected":
	default:
		l.complain("%s, which nobody has asked for", e.What)
	}
}

func (l *life) claimed(e ledger.Entry, before *attempt, prev, next *ledger.Row) {
	a := &attempt{at: e.At, want: next.Want, verifying: !next.VerifyAt.IsZero() && !next.VerifyAt.After(e.At)}
	if _, err := fmt.Sscanf(e.Note, "fence %d by %s", &a.fence, &a.owner); err != nil {
		l.complain("%q says nothing of a fence", e.Note)
	}
	if n := len(l.attempts); n > 0 && a.fence <= l.attempts[n-1].fence {
		l.complain("fence %d was granted after %d", a.fence, l.attempts[n-1].fence)
	}
	switch over := e.What == "taken over"; {
	case before == nil && over:
		l.complain("fence %d was taken over from nobody", a.fence)
	case before != nil && !over:
		l.complain("fence %d was granted while %d was held", a.fence, before.fence)
	case next.Lease.Until.Sub(e.At) < leaseTime:
		l.complain("fence %d has a lease of %v", a.fence, next.Lease.Until.Sub(e.At))
	case over && e.At.Before(prev.Lease.Until):
		l.complain("fence %d was taken over %v before its lease was over", before.fence, prev.Lease.Until.Sub(e.At))
	}
	if before != nil {
		before.end, before.unknown = "taken over", true
		a.verifying = before.verifying
	}
	l.attempts = append(l.attempts, a)
}

func (l *life) completed(e ledger.Entry, a *attempt, next *ledger.Row) {
	if a == nil {
		l.complain("%s %s without a lease", e.What, e.Note)
		return
	}
	a.end, a.have = e.What, next.Have
	a.unsure = !next.VerifyAt.Before(e.At.Add(horizon))
	if !strings.HasSuffix(e.Note, " "+next.Have.Order()) || a.have.Compare(a.want) != 0 {
		l.complain("fence %d was claimed for %s, and committed %s (%s)", a.fence, a.want.Order(), a.have.Order(), e.Note)
	}
	before := l.attempts[:len(l.attempts)-1]
	for _, b := range slices.Backward(before) {
		if b.completed() {
			if b.have.Compare(a.have) == 0 && !a.verifying {
				l.complain("%s was committed by fence %d, and again by %d", a.have.Order(), b.fence, a.fence)
			}
			break
		}
	}
	if a.acted() && !(l.output && a.verifying) {
		l.repeated(a, before)
	}
}

// repeated complains where the effect that a committed is that of the last one
// committed, and every attempt between had a known result.
func (l *life) repeated(a *attempt, before []*attempt) {
	for _, b := range slices.Backward(before) {
		switch {
		case b.unknown:
			return
		case !b.acted():
		case b.have.Kind != a.have.Kind || !b.have.Identity.Same(a.have.Identity):
			return
		default:
			l.complain("the effect of %s %s was committed by fence %d, and again by %d, with no attempt of unknown result between",
				a.have.Kind, a.have.Identity.ETag, b.fence, a.fence)
			return
		}
	}
}

// String tells the whole story.
func (l *life) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is %s", l.key, l.row.State(time.Now()))
	for _, e := range l.notes {
		fmt.Fprintf(&b, "\n  %s %s %s", e.At.Format("15:04:05.000"), e.What, e.Note)
	}
	return b.String()
}
