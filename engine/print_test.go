package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

type printer struct {
	strings.Builder
	world *world
	timed bool
}

func (p *printer) printf(format string, args ...any) { fmt.Fprintf(p, format, args...) }

func (p *printer) time(t time.Time) string { return fmt.Sprintf("+%v", t.Sub(start)) }

func keyText(k ledger.RowKey) string {
	if k.Pipeline == "p" {
		return k.Key
	}
	return k.Pipeline + "/" + k.Key
}

func (p *printer) actions(out []engine.Action) {
	for _, a := range out {
		switch a := a.(type) {
		case engine.Swap:
			p.swap(&a)
		case engine.Start:
			p.start(&a)
		case engine.Extend:
			p.printf("extend %s#%d deadline=%s\n", keyText(a.Key), a.Fence, p.time(a.Deadline))
		case engine.Cancel:
			p.printf("cancel %s#%d\n", keyText(a.Key), a.Fence)
		case engine.Answer:
			p.answer(&a)
		case engine.Sweep:
			p.printf("sweep %s before=%s limit=%d\n", a.Pipeline, p.time(a.Before), a.Limit)
		case engine.Load:
			p.printf("load %s\n", strings.Join(keyTexts(a.Keys), " "))
		case engine.Notice:
			p.notice(&a)
		}
	}
}

var kinds = map[engine.Kind]string{
	engine.Died: "died", engine.TookOver: "took over", engine.LostLease: "lost its lease", engine.AttemptFailed: "failed", engine.AttemptUncounted: "failed, not counted",
	engine.ShapeChanged: "shape changed", engine.Committed: "committed", engine.NothingToDo: "nothing to do",
	engine.Unreadable: "unreadable", engine.Disordered: "disordered",
	engine.ReceiverDown: "receiver down", engine.ReceiverUp: "receiver up",
	engine.Raised: "raised", engine.Duplicate: "duplicate", engine.Stale: "stale", engine.Acknowledged: "acknowledged",
	engine.Returned: "returned", engine.Claimed: "claimed", engine.AttemptReleased: "released",
	engine.RowsWritten: "rows written", engine.RowsRefused: "rows refused",
}

func (p *printer) notice(r *engine.Notice) {
	p.printf("notice")
	switch r.Key {
	case ledger.RowKey{}:
	case ledger.RowKey{Pipeline: r.Key.Pipeline}:
		p.printf(" %s", r.Key.Pipeline)
	default:
		p.printf(" %s", keyText(r.Key))
	}
	p.printf(": %s", kinds[r.Kind])
	if r.N > 0 {
		p.printf(" %d", r.N)
	}
	if p.timed && r.Took > 0 {
		p.printf(" after %v", r.Took)
	}
	if r.Detail != "" {
		p.printf(" (%s)", r.Detail)
	}
	p.printf("\n")
}

func keyTexts(keys []ledger.RowKey) (texts []string) {
	for _, k := range keys {
		texts = append(texts, keyText(k))
	}
	return texts
}

func (p *printer) swap(a *engine.Swap) {
	p.printf("swap %d\n", a.Batch)
	for _, c := range a.Changes {
		guess := ""
		if c.Expect.IsZero() {
			guess = " (new)"
		}
		prev := p.world.proposed[c.Expect]
		p.printf("  %s%s: %s -> %s\n", keyText(c.Key), guess, whatChanged(prev.History, c.Row.History), p.rowText(c.Row))
	}
}

// Only a renewal adds no history entry.
func whatChanged(before, after []ledger.Entry) string {
	n := 0
	for n < len(after) && !slices.Equal(after[n:], before[:min(len(before), len(after)-n)]) {
		n++
	}
	if n == 0 {
		return "renewed"
	}
	var what []string
	for _, e := range slices.Backward(after[:n]) {
		what = append(what, e.What)
	}
	return strings.Join(what, ", ")
}

func (p *printer) rowText(r *ledger.Row) string {
	if r.Nonce.IsZero() {
		return "none"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s want=%s", r.State(p.world.now), version(r.Want))
	if !r.Settled() {
		fmt.Fprintf(&b, " have=%s", version(r.Have))
	}
	if r.Held() {
		fmt.Fprintf(&b, " lease=%s#%d until=%s", r.Lease.Owner, r.Lease.Fence, p.time(r.Lease.Until))
	}
	if r.Attempts > 0 {
		fmt.Fprintf(&b, " attempts=%d", r.Attempts)
	}
	if !r.RetryAt.IsZero() {
		fmt.Fprintf(&b, " retry=%s", p.time(r.RetryAt.Truncate(time.Millisecond)))
	}
	if r.Doubt {
		b.WriteString(" doubt")
	}
	if r.Forced {
		b.WriteString(" forced")
	}
	if !r.VerifyAt.IsZero() {
		fmt.Fprintf(&b, " verify=%s", p.time(r.VerifyAt))
	}
	return b.String()
}

func version(v ledger.Version) string {
	if v.Kind == 0 && v.Sequencer.IsZero() && v.Generation == 0 {
		return "-"
	}
	text := v.Order()
	if v.Kind == event.Removed {
		text += "(removed)"
	}
	return text
}

func (p *printer) start(a *engine.Start) {
	p.printf("start %s#%d want=%s attempt=%d deadline=%s", keyText(a.Claim.Key), a.Claim.Fence, version(a.Claim.Want), a.Claim.Number, p.time(a.Deadline))
	if a.Claim.Verifying {
		p.printf(" verifying")
	}
	p.printf("\n")
}

func (p *printer) answer(a *engine.Answer) {
	if a.Ack {
		p.printf("ack %d", a.ID)
	} else {
		p.printf("return %d after=%v (%s)", a.ID, a.After.Truncate(time.Millisecond), strings.ReplaceAll(fmt.Sprint(a.Err), "\n", "; "))
	}
	for _, n := range []struct {
		name string
		n    int
	}{{"raised", a.Raised}, {"duplicate", a.Duplicate}, {"stale", a.Stale}} {
		if n.n > 0 {
			p.printf(" %s=%d", n.name, n.n)
		}
	}
	p.printf("\n")
}

func (p *printer) outcomes(batch uint64, changes []ledger.Change, out []ledger.Outcome) {
	p.printf("answer %d:", batch)
	for i, o := range out {
		verdict := "applied"
		if !o.Applied {
			verdict = "refused"
		}
		p.printf(" %s %s", keyText(changes[i].Key), verdict)
	}
	p.printf("\n")
}
