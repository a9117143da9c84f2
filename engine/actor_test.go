package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/ledger"
)

// actor is a worker of a history: an engine, and what package worker would do
// for it.
type actor struct {
	*history
	name   string
	engine *engine.Engine
	skew   time.Duration

	inbox    []engine.Input
	frozen   time.Time // until then its process does not run
	tick     int       // only the timer set last counts
	tasks    map[ledger.RowKey]*task
	had      map[int64]bool         // fences of every task
	sent     map[ledger.RowKey]bool // by the last attempt that ended
	open     map[uint64]*message
	swaps    map[uint64]int // changes of each batch on its way
	sweeping map[string]bool

	looking                        bool
	stopping, draining, hard, gone bool
}

// task is a running attempt.
type task struct {
	ledger.Claim
	deadline time.Time // by the actor's clock
	deaf     bool      // goes on when it is told to stop
	calm     bool      // began when nothing went wrong, and nothing changed, any more
	over     bool
}

func (a *actor) clock() time.Time { return a.now.Add(a.skew) }

// live reports that a task runs and may still rely on its lease.
func (a *actor) live(k *task) bool { return !a.gone && !k.over && a.clock().Before(k.deadline) }

// tell gives the engine an input, as soon as the process runs.
func (a *actor) tell(in engine.Input) {
	a.inbox = append(a.inbox, in)
	if len(a.inbox) == 1 {
		a.at(later(a.now, a.frozen), a.step)
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (a *actor) step() {
	switch {
	case a.gone:
		return
	case a.frozen.After(a.now):
		a.at(a.frozen, a.step)
		return
	}
	in := a.inbox
	a.inbox = nil
	a.draining = a.draining || slices.Contains(in, engine.Input(engine.Drain{}))
	a.logf("gets %+v", in)
	for _, act := range a.engine.Step(a.clock(), in...) {
		a.record(act)
		a.logf("%T %+v", act, act)
		a.do(act)
	}
	a.tick++
	if next := a.engine.Next(); !next.IsZero() {
		tick := a.tick
		a.at(later(next.Add(-a.skew), a.now.Add(time.Millisecond)), func() {
			if a.tick == tick {
				a.tell(engine.Tick{})
			}
		})
	}
}

func (a *actor) logf(format string, args ...any) {
	if *narrate {
		a.t.Logf("+%v %s "+format, append([]any{a.now.Sub(start), a.name}, args...)...)
	}
}

// record digests an action, but not where in memory it is.
func (a *actor) record(act engine.Action) {
	swap, ok := act.(engine.Swap)
	if !ok {
		fmt.Fprintf(a.trace, "%s %T %+v\n", a.name, act, act)
		return
	}
	fmt.Fprintf(a.trace, "%s swap %d\n", a.name, swap.Batch)
	for _, c := range swap.Changes {
		fmt.Fprintf(a.trace, "%v %x %x %v\n", c.Key, c.Expect, c.Row.Nonce, c.Row.Lease)
	}
}

func (a *actor) do(act engine.Action) {
	switch act := act.(type) {
	case engine.Swap:
		a.checkSwap(&act)
		a.swap(act)
	case engine.Start:
		a.start(&act)
	case engine.Extend:
		if k := a.tasks[act.Key]; k != nil && k.Fence == act.Fence && !k.over {
			a.checkExtend(k, act.Deadline)
			k.deadline = act.Deadline
			a.at(k.deadline.Add(-a.skew), func() { a.expire(k) })
		}
	case engine.Cancel:
		if k := a.tasks[act.Key]; k != nil && k.Fence == act.Fence && !k.deaf {
			a.after(a.upTo(time.Second), func() { a.finish(k, engine.Failed) })
		}
	case engine.Answer:
		a.answered(&act)
	case engine.Sweep:
		a.sweep(act)
	case engine.Look:
		a.look(act)
	case engine.Report:
		switch act.What {
		case engine.LostLease:
			a.checkLost(act.Key)
		case engine.Died:
			delete(a.store.silent, act.Key)
		}
	}
}

// swap sends a batch on its way. In bad times it may be slow, or land without
// an answer, or not land, or land late; then the ledger finds out.
func (a *actor) swap(s engine.Swap) {
	land := func(changes []ledger.Change) []ledger.Outcome { return a.land(changes) }
	answer := func(out []ledger.Outcome) { a.answer(engine.Swapped{Batch: s.Batch, Outcomes: out}) }
	resolve := func() { answer(a.resolve(s.Changes)) }
	if a.hard {
		a.after(a.upTo(time.Second), func() {
			if a.chance(50) {
				land(s.Changes)
			}
			answer(cutOff(len(s.Changes)))
		})
		return
	}
	way, back := a.upTo(30*time.Millisecond), a.upTo(30*time.Millisecond)
	fate := 99
	if a.faulty() {
		fate = a.rng.IntN(100)
		if a.chance(5) {
			way = a.upTo(40 * time.Second)
		}
	}
	lookLater := func() { a.after(a.upTo(time.Duration(a.pick(1, 50))*time.Second), resolve) }
	switch {
	case fate < 12: // landed, but the answer is lost
		a.after(way, func() { land(s.Changes); lookLater() })
	case fate < 20: // never sent
		lookLater()
	case fate < 25: // given up for lost, and landing some time
		lookLater()
		a.after(a.upTo(time.Minute), func() { land(s.Changes) })
	case fate < 28: // half of it landed
		a.after(way, func() { land(s.Changes[:len(s.Changes)/2]); lookLater() })
	default:
		a.after(way, func() {
			out := land(s.Changes)
			a.after(back, func() { answer(out) })
		})
	}
}

func cutOff(changes int) []ledger.Outcome {
	return unanswered(changes, errors.New("the call was cut off"))
}

// answer tells the engine what became of a batch, unless the answer is "cut
// off" already.
func (a *actor) answer(in engine.Swapped) {
	if a.swaps[in.Batch] == 0 {
		return
	}
	delete(a.swaps, in.Batch)
	a.tell(in)
}

func (a *actor) land(changes []ledger.Change) []ledger.Outcome {
	a.store.writer = a
	defer func() { a.store.writer = nil }()
	out, err := a.store.Swap(a.t.Context(), changes)
	if err != nil {
		a.t.Fatal(err)
	}
	return out
}

// resolve is the real ledger's word on a batch whose answer was lost. The dead
// do not ask.
func (a *actor) resolve(changes []ledger.Change) []ledger.Outcome {
	if a.gone {
		return nil
	}
	a.store.writer = a
	defer func() { a.store.writer = nil }()
	faulty := &unsent{Store: a.store}
	out, err := ledger.New(faulty).Swap(a.t.Context(), changes)
	if err != nil {
		a.t.Fatal(err)
	}
	return out
}

func (a *actor) start(s *engine.Start) {
	k := &task{Claim: s.Claim, deadline: s.Deadline, deaf: a.chance(10), calm: !a.faulty()}
	a.checkStart(k)
	a.tasks[k.Key], a.had[k.Fence] = k, true
	a.at(later(k.deadline.Add(-a.skew), a.now), func() { a.expire(k) })
	takes := a.upTo(5 * time.Second)
	if a.chance(15) {
		takes = a.upTo(time.Minute)
	}
	if a.looksOnly(k) {
		takes = a.upTo(time.Second)
	}
	a.after(takes, func() { a.finish(k, a.result(k)) })
}

// looksOnly reports that an attempt finds the object as it was handled: an event
// that is given again makes it look, and does not keep the handler at work. Else
// messages that wait for two objects could keep these busy, and so each other, for
// ever: each of them raises both whenever it comes.
func (a *actor) looksOnly(k *task) bool {
	return k.calm && !k.Doubt && !k.Forced && a.handled[k.Key]
}

func (a *actor) result(k *task) engine.Result {
	switch n := a.rng.IntN(100); {
	case a.poison[k.Key], a.faulty() && n < 25:
		return engine.Failed
	case a.faulty() && n < 30:
		return engine.Released
	}
	return engine.Completed
}

// expire ends a task whose deadline has passed.
func (a *actor) expire(k *task) {
	if !a.clock().Before(k.deadline) {
		if !k.over && a.now.After(a.calm.Add(2*time.Minute)) {
			a.fail("%s: fence %d of %s ran out, and nothing was wrong", a.name, k.Fence, k.Key)
		}
		if !k.deaf {
			a.finish(k, engine.Failed)
		}
	}
}

func (a *actor) finish(k *task, r engine.Result) {
	switch {
	case a.gone, k.over:
		return
	case a.frozen.After(a.now):
		a.at(a.frozen, func() { a.finish(k, r) })
		return
	}
	k.over = true
	delete(a.tasks, k.Key)
	f := engine.Finished{Key: k.Key, Fence: k.Fence, Result: r, Acted: a.chance(80)}
	f.Ending.Read.Kind = k.Want.Kind
	f.Ending.Sent = r == engine.Completed || a.chance(50)
	f.Ending.Unsure = f.Ending.Sent && a.faulty() && a.chance(20)
	if r == engine.Failed {
		f.Failure = ledger.Failure{Message: "no luck", Permanent: a.chance(10), After: a.upTo(10 * time.Second)}
		if a.chance(50) {
			f.Shared = engine.Shared{Cause: "down", Objects: a.pick(2, 5)}
		}
	}
	a.sent[k.Key] = f.Ending.Sent
	if k.calm && r == engine.Completed {
		a.handled[k.Key] = true
	}
	a.tell(f)
}

func (a *actor) answered(s *engine.Answer) {
	m := a.open[s.ID]
	if m == nil {
		a.fail("%s: message %d is answered twice", a.name, s.ID)
		return
	}
	delete(a.open, s.ID)
	if !s.Ack {
		if s.Err == nil {
			a.fail("%s: message %d is handed back without a reason", a.name, s.ID)
		}
		a.after(s.After+a.upTo(time.Second), func() { a.history.deliver(m) })
		return
	}
	m.acked = true
	for i := range m.items {
		a.store.acked(&m.items[i])
	}
}

func (a *actor) sweep(s engine.Sweep) {
	a.checkSweep(&s)
	a.after(a.upTo(time.Second), func() {
		delete(a.sweeping, s.Pipeline)
		var rows []ledger.Row
		if !a.faulty() || a.chance(90) {
			var err error
			if rows, err = a.store.Due(a.t.Context(), s.Pipeline, s.Before, s.Limit); err != nil {
				a.t.Fatal(err)
			}
		}
		a.tell(engine.Swept{Pipeline: s.Pipeline, Rows: rows})
	})
}

func (a *actor) look(l engine.Look) {
	if a.looking || len(l.Keys) == 0 || len(l.Keys) > a.cfg.Batch {
		a.fail("%s: a look at %d rows, while another is out: %v", a.name, len(l.Keys), a.looking)
	}
	a.looking = true
	a.after(a.upTo(time.Second), func() {
		a.looking = false
		in := engine.Looked{}
		if !a.faulty() || a.chance(80) {
			in.Keys = l.Keys
			for _, key := range l.Keys {
				if row := a.store.row(key); !row.Nonce.IsZero() {
					in.Rows = append(in.Rows, row)
				}
			}
		}
		a.tell(in)
	})
}

// crash ends the process in the middle of whatever it does.
func (a *actor) crash() {
	a.gone = true
	for _, id := range sortedIDs(a.open) {
		m := a.open[id]
		a.after(a.upTo(time.Minute), func() { a.history.deliver(m) })
	}
	a.after(a.upTo(time.Minute), a.hire)
}

// stop is an orderly shutdown: whatever outlasts the grace is released.
func (a *actor) stop() {
	a.stopping = true
	a.tell(engine.Drain{})
	a.after(20*time.Second, func() {
		for _, key := range a.keys {
			if k := a.tasks[key]; k != nil {
				a.finish(k, engine.Released)
			}
		}
	})
	a.after(a.upTo(time.Minute), a.hire)
}

// stopHard cuts the calls to the ledger off.
func (a *actor) stopHard() {
	if a.gone {
		return
	}
	a.hard = true
	for _, id := range sortedIDs(a.swaps) {
		a.answer(engine.Swapped{Batch: id, Outcomes: cutOff(a.swaps[id])})
	}
}
