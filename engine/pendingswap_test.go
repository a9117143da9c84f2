package engine

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

var swapStart = time.Unix(1000, 0)

func swapConfig() *Config {
	return &Config{Owner: "a", Policy: ledger.DefaultPolicy(), Rand: rand.New(rand.NewPCG(1, 0))}
}

func claimed(t *testing.T) (ledger.Row, *ledger.Claim) {
	t.Helper()
	p := &pendingSwap{next: ledger.Row{RowKey: objectKey("k")}}
	o := observation{item: Item{Event: event.Event{Kind: event.Created, Time: swapStart}}}
	if !p.observe(&o, swapStart) || o.verdict != ledger.Raised || !p.applyClaim(swapConfig(), swapStart) || p.claim == nil {
		t.Fatalf("a new object is not claimed: %+v", p)
	}
	p.next.Nonce = ledger.Nonce{1}
	return p.next, p.claim
}

func TestPendingSwapGrants(t *testing.T) {
	row, _ := claimed(t)
	p := &pendingSwap{next: row}
	if p.applyClaim(swapConfig(), swapStart) || p.claim != nil || p.retired {
		t.Error("a row with a live lease is claimed")
	}
	p.next.Attempts = swapConfig().Policy.Attempts
	if !p.applyClaim(swapConfig(), swapStart.Add(time.Hour)) || !p.retired || p.claim != nil || !p.next.Dead {
		t.Error("a row without attempts left is not retired")
	}
}

func TestPendingSwapEndsAttempt(t *testing.T) {
	held, claim := claimed(t)
	taken := held
	taken.Lease.Fence++
	committed, _ := held.Complete(claim, &ledger.Ending{Read: ledger.Read{Kind: event.Created}}, true, &swapConfig().Policy, swapStart)
	for _, c := range []struct {
		what             string
		row              ledger.Row
		finished         Finished
		changes, refused bool
		result           Result
		acted            bool
	}{
		{"completed", held, Finished{Result: Completed}, true, false, Completed, false},
		{"failed", held, Finished{Result: Failed}, true, false, Failed, false},
		{"released", held, Finished{Result: Released}, true, false, Released, false},
		{"without its lease", taken, Finished{Result: Completed}, false, true, Completed, false},
		{"without its lease, after a write", taken, Finished{Result: Failed, Ending: ledger.Ending{Sent: true}}, true, true, Failed, false},
		{"without a row, after a write", ledger.Row{RowKey: held.RowKey}, Finished{Result: Failed, Ending: ledger.Ending{Sent: true}}, false, true, Failed, false},
		{"committed by its transaction", committed, Finished{Result: Failed, Transactional: true}, false, false, Completed, true},
		{"found committed by its transaction", committed, Finished{Result: Completed, Transactional: true}, false, false, Completed, false},
		{"without its transaction's commit", taken, Finished{Result: Failed, Transactional: true}, false, true, Failed, false},
		{"committed otherwise", committed, Finished{Result: Failed}, false, true, Failed, false},
	} {
		in := c.finished
		in.Ending.Read.Kind = event.Created
		p := &pendingSwap{next: c.row, finish: &in}
		changes := p.applyResult(&c.row, claim, swapConfig(), swapStart)
		if changes != c.changes || p.refused != c.refused || in.Result != c.result || in.Acted != c.acted {
			t.Errorf("%s: changes %t, refused %t, result %d, acted %t", c.what, changes, p.refused, in.Result, in.Acted)
		}
	}
}

func TestPendingSwapSupersededAfterLanding(t *testing.T) {
	held, claim := claimed(t)
	claiming := &pendingSwap{claim: claim}
	if !claiming.supersededBy(&held, "a", nil) || claiming.supersededBy(&held, "b", nil) {
		t.Error("the owner of the granted fence does not decide")
	}
	in := Finished{Result: Completed, Ending: ledger.Ending{Read: ledger.Read{Kind: event.Created}}}
	ending := &pendingSwap{next: held, finish: &in}
	ending.applyResult(&held, claim, swapConfig(), swapStart)
	landed := ending.next
	behind, dead, later := landed, landed, landed
	behind.Have = ledger.Version{}
	dead.Dead = true
	later.Lease.Fence++
	if !ending.supersededBy(&landed, "a", claim) || ending.supersededBy(&held, "a", claim) {
		t.Error("the end of the lease does not decide")
	}
	for what, row := range map[string]*ledger.Row{"an older Have": &behind, "a death": &dead, "another lease": &later} {
		if ending.supersededBy(row, "a", claim) {
			t.Errorf("supersededBy mistakes %s for our write", what)
		}
	}
}

func TestRefusedClaimReleasesItsSlot(t *testing.T) {
	cfg := swapConfig()
	cfg.Pipelines, cfg.Tasks, cfg.Swaps, cfg.Batch, cfg.SweepInterval = []string{"p"}, 1, 1, 1, time.Hour
	e := New(*cfg)
	row, _ := claimed(t)
	due := row
	due.Lease, due.Nonce = ledger.Lease{}, ledger.Nonce{2}
	row.Lease.Owner, row.Lease.Fence = "b", 1<<60
	out := e.Step(swapStart, Tick{})
	out = e.Step(swapStart, Swept{Pipeline: out[0].(Sweep).Pipeline, Rows: []ledger.Row{due}})
	if e.slots.used != 1 {
		t.Fatalf("%d slots are used by a claim", e.slots.used)
	}
	e.Step(swapStart, Swapped{Batch: out[0].(Swap).Batch, Outcomes: []ledger.Outcome{{Current: &row}}})
	if e.slots.used != 0 || !e.Idle() {
		t.Errorf("%d slots are used after the claim was refused", e.slots.used)
	}
}
