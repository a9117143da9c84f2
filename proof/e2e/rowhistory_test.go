//go:build unix

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl/ledger"
)

// rowHistory is the complete history of one row. Every write must follow these rules:
//
//   - Want, Have and the fence never go back, and no row is deleted.
//   - A worker gets the lease if no worker holds it, or after it has expired. Each lease has a higher fence
//     than all earlier ones.
//   - An attempt ends in the ledger only while it holds the lease, and commits the Want of its claim.
//   - A version is committed once, and again only to verify it.
//   - Its effect is committed once, and again only after an attempt of unknown result, or if a verification
//     found the output wrong.
type rowHistory struct {
	key        ledger.RowKey
	output     bool
	row        ledger.Row
	entries    []ledger.Entry // oldest first; a row itself keeps only its latest entries
	attempts   []*attempt     // in order of their claims
	violations []string
}

type attempt struct {
	fence     int64
	owner     string
	at        time.Time
	want      ledger.Version
	verifying bool // VerifyAt had passed at the claim, or at that of the attempt it took over

	outcome string // "" while it runs
	have    ledger.Version
	// unknown: it may have had an effect that no row records.
	unknown bool
	// unsure: it was completed, but a copy of its write may still land.
	unsure bool
}

func (l *rowHistory) running() *attempt {
	if n := len(l.attempts); n > 0 && l.attempts[n-1].outcome == "" {
		return l.attempts[n-1]
	}
	return nil
}

func (l *rowHistory) byFence(fence int64) *attempt {
	for _, a := range l.attempts {
		if a.fence == fence {
			return a
		}
	}
	return nil
}

func (l *rowHistory) unsettled() int64 {
	if l.row.Settled() && !l.row.Held() {
		return 0
	}
	return 1
}

func (l *rowHistory) violatef(format string, args ...any) {
	l.violations = append(l.violations, fmt.Sprintf(format, args...))
}

// Tombstones are kept for longer than any test, so no row may be deleted.
func (l *rowHistory) observeDeletion() { l.violatef("the row was deleted") }

func (l *rowHistory) observe(next ledger.Row) {
	prev := l.row
	if prev.Unknown != "" && next.Unknown != prev.Unknown {
		l.violatef("the unknown members %s became %s", prev.Unknown, next.Unknown)
	}
	switch {
	case next.Want.Compare(prev.Want) < 0:
		l.violatef("want went back from %s to %s", prev.Want.Order(), next.Want.Order())
	case next.Have.Compare(prev.Have) < 0:
		l.violatef("have went back from %s to %s", prev.Have.Order(), next.Have.Order())
	case next.Have.Compare(next.Want) > 0:
		l.violatef("have %s is greater than want %s", next.Have.Order(), next.Want.Order())
	case next.Lease.Fence < prev.Lease.Fence:
		l.violatef("the fence went back from %d to %d", prev.Lease.Fence, next.Lease.Fence)
	}
	for _, e := range newEntries(prev.History, next.History) {
		l.entries = append(l.entries, e)
		l.applyEntry(e, &prev, &next)
	}
	switch a := l.running(); {
	case next.Held() != (a != nil):
		l.violatef("held by %q, but the running attempt is %+v", next.Lease.Owner, a)
	case a != nil && (a.fence != next.Lease.Fence || a.owner != next.Lease.Owner):
		l.violatef("held by %q with fence %d, but claimed by %q with %d", next.Lease.Owner, next.Lease.Fence, a.owner, a.fence)
	case next.Have.Compare(prev.Have) != 0 && !l.recentlyCommitted(next.Have):
		l.violatef("have became %s without a completion", next.Have.Order())
	}
	l.row = next
}

func (l *rowHistory) recentlyCommitted(v ledger.Version) bool {
	for i := len(l.attempts) - 1; i >= 0 && i >= len(l.attempts)-2; i-- {
		if a := l.attempts[i]; a.completed() && a.have.Compare(v) == 0 {
			return true
		}
	}
	return false
}

func (a *attempt) completed() bool { return a.outcome == "completed" || a.outcome == "nothing to do" }

func (a *attempt) committedEffect() bool { return a.outcome == "completed" }

func newEntries(old, now []ledger.Entry) (fresh []ledger.Entry) {
	for len(now) > 0 && !isPrefixOf(now, old) {
		fresh = append([]ledger.Entry{now[0]}, fresh...)
		now = now[1:]
	}
	return fresh
}

func isPrefixOf(now, old []ledger.Entry) bool {
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

// A write may contain several entries: events, the end of one attempt, and the claim of the next, in this
// order.
func (l *rowHistory) applyEntry(e ledger.Entry, prev, next *ledger.Row) {
	a := l.running()
	switch e.What {
	case "claimed", "taken over":
		l.observeClaim(e, a, prev, next)
	case "completed", "nothing to do":
		l.observeCompletion(e, a, next)
	case "failed", "released", "dead":
		if a == nil {
			l.violatef("%s without a lease", e.What)
			return
		}
		a.outcome = e.What
		a.unknown = next.Doubt || next.Forced
	case "raised", "suspected":
	default:
		l.violatef("%s without a request", e.What)
	}
}

func (l *rowHistory) observeClaim(e ledger.Entry, before *attempt, prev, next *ledger.Row) {
	a := &attempt{at: e.At, want: next.Want, verifying: !next.VerifyAt.IsZero() && !next.VerifyAt.After(e.At)}
	if _, err := fmt.Sscanf(e.Note, "fence %d by %s", &a.fence, &a.owner); err != nil {
		l.violatef("%q contains no fence", e.Note)
	}
	if n := len(l.attempts); n > 0 && a.fence <= l.attempts[n-1].fence {
		l.violatef("fence %d was granted after %d", a.fence, l.attempts[n-1].fence)
	}
	switch over := e.What == "taken over"; {
	case before == nil && over:
		l.violatef("fence %d was taken over without a holder", a.fence)
	case before != nil && !over:
		l.violatef("fence %d was granted while %d was held", a.fence, before.fence)
	case next.Lease.Until.Sub(e.At) < leaseTime:
		l.violatef("fence %d has a lease of %v", a.fence, next.Lease.Until.Sub(e.At))
	case over && e.At.Before(prev.Lease.Until):
		l.violatef("fence %d was taken over %v before its lease expired", before.fence, prev.Lease.Until.Sub(e.At))
	}
	if before != nil {
		before.outcome, before.unknown = "taken over", true
		a.verifying = before.verifying
	}
	l.attempts = append(l.attempts, a)
}

func (l *rowHistory) observeCompletion(e ledger.Entry, a *attempt, next *ledger.Row) {
	if a == nil {
		l.violatef("%s %s without a lease", e.What, e.Note)
		return
	}
	a.outcome, a.have = e.What, next.Have
	a.unsure = !next.VerifyAt.Before(e.At.Add(horizon))
	if !strings.HasSuffix(e.Note, " "+next.Have.Order()) || a.have.Compare(a.want) != 0 {
		l.violatef("fence %d was claimed for %s, but committed %s (%s)", a.fence, a.want.Order(), a.have.Order(), e.Note)
	}
	before := l.attempts[:len(l.attempts)-1]
	for _, b := range slices.Backward(before) {
		if b.completed() {
			if b.have.Compare(a.have) == 0 && !a.verifying {
				l.violatef("%s was committed by fence %d, and again by %d", a.have.Order(), b.fence, a.fence)
			}
			break
		}
	}
	if a.committedEffect() && !(l.output && a.verifying) {
		l.checkRepeat(a, before)
	}
}

// checkRepeat allows a repeated effect only after an attempt of unknown result.
func (l *rowHistory) checkRepeat(a *attempt, before []*attempt) {
	for _, b := range slices.Backward(before) {
		switch {
		case b.unknown:
			return
		case !b.committedEffect():
		case b.have.Kind != a.have.Kind || !b.have.Identity.Same(a.have.Identity):
			return
		default:
			l.violatef("the effect of %s %s was committed by fence %d, and again by %d, with no attempt of unknown result between",
				a.have.Kind, a.have.Identity.ETag, b.fence, a.fence)
			return
		}
	}
}

func (l *rowHistory) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is %s", l.key, l.row.State(time.Now()))
	for _, e := range l.entries {
		fmt.Fprintf(&b, "\n  %s %s %s", e.At.Format("15:04:05.000"), e.What, e.Note)
	}
	return b.String()
}
