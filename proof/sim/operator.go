package sim

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/pawlhq/pawl/audit"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/simkit"
	"github.com/pawlhq/pawl/ledger"
)

func (w *World) scheduleOperators() {
	some := func(n int, do func(*oracle)) {
		for range n {
			t := w.oracles[w.Tape.Choose(len(w.oracles))]
			at := w.Tape.UpTo(w.plan.window + maxDelay)
			if w.Tape.Chance(500) { // at the time of another event
				at = w.changes[w.Tape.Choose(len(w.changes))] + w.Tape.UpTo(time.Minute)
			}
			w.At(max(0, at-30*time.Second), simkit.Func(func() { do(t) }))
		}
	}
	some(w.plan.audits, w.audit)
	some(w.plan.purges, w.purge)
	some(w.plan.redrives, func(t *oracle) { w.redrive(t, w.Tape.Chance(500)) })
}

// repair does what operators do after faults. A row that an audit raises may be claimed together
// with a poison row. If rows have a single attempt, both may then become dead.
func (w *World) repair() {
	w.Now = max(w.Now, w.faultsEnd)
	if w.plan.noSweep {
		w.replaceWorkers()
	}
	w.redriveDead()
	if w.plan.loses == 0 {
		return
	}
	w.Now += 2 * settle
	for _, t := range w.oracles {
		w.auditOfEmptyBucket(t)
	}
	w.loop()
	for _, t := range w.oracles {
		w.audit(t)
	}
	w.loop()
	if w.plan.attempts == 1 {
		w.redriveDead()
	}
}

// Without sweeps, no worker runs verifications, or processes a row whose Want rose after the
// acknowledgment.
func (w *World) replaceWorkers() {
	for _, n := range slices.Clone(w.nodes) {
		n.drain()
	}
	w.loop()
}

func (w *World) redriveDead() {
	for _, t := range w.oracles {
		if t.exists && t.row.Dead && !t.poisoned() {
			w.redrive(t, false)
		}
	}
	w.loop()
}

// operatorSwap reports whether the row was unchanged, so that the write landed.
func (w *World) operatorSwap(t *thread, expect ledger.Nonce, next *ledger.Row) bool {
	next.Nonce = w.operatorNonce()
	out, err := t.ledger.Swap(context.Background(), []ledger.Change{{Key: next.RowKey, Expect: expect, Row: next}})
	return err == nil && out[0].Applied
}

func (w *World) operatorNonce() (n ledger.Nonce) {
	w.nonces++
	n[0] = 0xFF
	binary.BigEndian.PutUint64(n[8:], uint64(w.nonces))
	return n
}

func (w *World) redrive(t *oracle, force bool) {
	if !t.exists {
		return
	}
	w.spawn(nil, func(th *thread) {
		next := t.row.Redrive(force, w.time())
		if w.Trace != nil {
			w.logf(nil, "an operator redrives %s, force %v", t.key, force)
		}
		t.attemptsReset(force)
		w.operatorSwap(th, t.row.Nonce, &next)
	})
}

// The row may have changed since the decision to purge it.
func (w *World) purge(t *oracle) {
	row := t.row
	if !t.exists || !row.Purgeable(&w.policy, w.time()) {
		return
	}
	if w.Trace != nil {
		w.logf(nil, "an operator purges %s", t.key)
	}
	w.After(w.latency(), func() { w.swap(nil, []ledger.Change{{Key: t.key, Expect: row.Nonce}}) })
}

func (w *World) audit(t *oracle) {
	w.spawn(nil, func(th *thread) {
		for !th.dead() {
			if _, err := w.auditRow(th, t, &storeView{objectStore: &w.objectStore, thread: th}, 1, false); err == nil {
				return
			}
		}
	})
}

// The audit of an empty bucket may write no removals.
func (w *World) auditOfEmptyBucket(t *oracle) {
	w.spawn(nil, func(th *thread) {
		found, err := w.auditRow(th, t, &storeView{objectStore: &objectStore{world: w}, thread: th}, 0, false)
		if found.LostRemovals > 0 {
			w.violatef(I11, "%s: an audit raised a removal that was not permitted: %v", t.key, err)
		}
	})
}

// removals is the maximum number of removals that the audit may write.
func (w *World) auditRow(th *thread, t *oracle, objects *storeView, removals int64, dry bool) (found audit.Counts, err error) {
	p := audit.Pass{
		Pipeline: &audit.Pipeline{
			Name: t.key.Pipeline, Bucket: t.key.Bucket, Match: func(o event.Object) bool { return o.Key == t.key.Key },
		},
		Listing: objects, Objects: objects, Ledger: th.ledger, SettleWindow: settle, DryRun: dry, Now: w.time,
		Nonce: func() ledger.Nonce {
			if !dry {
				t.attemptsReset(false)
				th.sleep(w.Tape.UpTo(time.Minute))
			}
			return w.operatorNonce()
		},
		Each: func(n int, do func(i int)) {
			for i := range n {
				do(i)
			}
		},
		Found: func(_ ledger.RowKey, what string, _ bool) {
			if w.Trace != nil {
				w.logf(nil, "an audit of %s finds: %s", t.key, what)
			}
		},
	}
	add := func(c *audit.Counts) error {
		found.Add(c)
		return nil
	}
	if err = p.Walk(context.Background(), "", audit.NewSpan(""), add); err != nil || found.Removable == 0 {
		return found, err
	}
	p.Brake = audit.NewBrake(removals, 0)
	return found, p.Walk(context.Background(), "", audit.NewSpan(""), add)
}
