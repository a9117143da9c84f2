package lock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/internal/linearizable"
	"github.com/pawlhq/pawl/internal/simkit"
)

const (
	lockKey = "lock"
	dataKey = "data"
	limit   = 2
)

func runWorld(threads *threads, kernel *simkit.World) {
	w := &simulation{World: kernel, threads: threads, plan: drawPlan(kernel.Tape), objects: map[string]*storedObject{}, disturbed: map[string]int64{}, outcomes: map[string]bool{}, unresolved: map[string]updateTry{}, history: linearizable.New()}
	w.Tracef("%+v", w.plan)
	for range w.plan.procs {
		p := w.proc()
		w.After(w.Tape.UpTo(2*w.plan.ttl), p.start)
	}
	if w.plan.operator && w.plan.kind != updates {
		w.After(w.Tape.UpTo(4*w.plan.ttl), func() { w.proc().spawn(forceRelease) })
	}
	if w.plan.deletes && w.plan.kind == mutexes && !w.plan.register && !w.plan.skewed && w.plan.faultless() {
		w.After(w.Tape.UpTo(4*w.plan.ttl), w.deleteLease)
	}
	w.run()
	w.finish()
	w.threads.Abort()
}

func (p *proc) start() {
	if p.plan.kind == updates {
		p.spawn(updateMany)
		return
	}
	l := p.newLock()
	p.spawn(l.contend)
	if p.plan.sharing {
		p.spawn(l.contend)
	}
}

func (w *simulation) finish() {
	w.calm = true
	if len(w.Violations) > 0 {
		return
	}
	if w.plan.kind == updates {
		w.checkUpdates()
		return
	}
	p, done := w.proc(), false
	p.spawn(func(t *thread) {
		ctx, stop := t.Limit(context.Background(), w.plan.acquireTimeout())
		defer stop()
		h, err := t.newLock().acquire(ctx, false, true)
		if err != nil {
			w.Violatef("L4", "%v", err)
			return
		}
		w.recordGrant(&holding{proc: t.proc, lease: h})
		done = true
	})
	w.run()
	if !done && len(w.Violations) == 0 {
		w.Violatef("L4", "the lock cannot be acquired in the end")
	}
	w.checkUpdates()
}

type simLock struct {
	acquire func(ctx context.Context, reads, wait bool) (*heldLease, error)
	release func(ctx context.Context, h *heldLease, lost error) error
}

func (p *proc) newLock() *simLock {
	c := Config{TTL: p.plan.ttl, Owner: fmt.Sprintf("process %d", p.id)}
	release := func(ctx context.Context, h *heldLease, _ error) error { return h.release(ctx) }
	switch p.plan.kind {
	case semaphores:
		s, err := p.bucket().Semaphore(lockKey, limit, c)
		if err != nil {
			panic(err)
		}
		return &simLock{func(ctx context.Context, _, wait bool) (*heldLease, error) {
			return s.slots.acquire(ctx, wait, s.slots.tryAcquire)
		}, release}
	case shared:
		m, err := p.bucket().RWMutex(lockKey, c)
		if err != nil {
			panic(err)
		}
		return &simLock{func(ctx context.Context, reads, wait bool) (*heldLease, error) {
			if reads {
				return m.readers.acquire(ctx, wait, m.tryRLock)
			}
			return m.lock(ctx, wait)
		}, release}
	}
	m, err := p.mutex(c)
	if err != nil {
		panic(err)
	}
	return &simLock{func(ctx context.Context, _, wait bool) (*heldLease, error) { return m.enter(ctx, wait) }, m.release}
}

func (p *proc) mutex(c Config) (*Mutex, error) {
	if !p.plan.register {
		return p.bucket().Mutex(lockKey, c)
	}
	holder, err := c.holderRecord()
	return p.env().onRegister(&storeRegisters{&network{p}}, lockKey, holder), err
}

func (l *simLock) contend(t *thread) {
	for range 1 + t.Tape.Choose(3) {
		ctx, stop := t.Limit(context.Background(), simkit.Pick(t.Tape, time.Duration(10), 3, 1)*t.plan.ttl)
		reads := t.plan.kind == shared && t.Tape.Choose(3) > 0
		h, err := l.acquire(ctx, reads, t.Tape.Choose(4) > 0)
		stop()
		switch {
		case err == nil:
			l.hold(t, h, reads)
		default:
			t.checkRefusal(err)
		}
		t.wait(t.Tape.UpTo(t.plan.ttl / 2))
	}
}

func (t *thread) checkRefusal(err error) {
	t.Tracef("process %d: %v", t.id, err)
	var held *HeldError
	mates := t.plan.sharing && (t.plan.kind == shared || t.plan.kind == semaphores)
	if !mates && errors.As(err, &held) && held.Record.Owner == fmt.Sprintf("process %d", t.id) {
		t.Violatef("L3", "process %d gets: %v", t.id, err)
	}
}

func (l *simLock) hold(t *thread, h *heldLease, reads bool) {
	b := &holding{proc: t.proc, lease: h, reads: reads}
	t.recordGrant(b)
	renewals := &stoppable{Context: context.Background()}
	var lost error
	ended := false
	t.proc.spawn(func(*thread) {
		lost = h.renewLoop(renewals, func() { t.checkExclusion(b) })
		if lost != nil {
			b.over = true
			t.Tracef("process %d: %v", t.id, lost)
		}
		ended = true
	})
	until := t.Now().Add(t.Tape.UpTo(2 * t.plan.ttl))
	for t.Now().Before(until) && lost == nil {
		if t.plan.kind == mutexes && t.Tape.Chance(200) {
			t.update(h.at.rec.Token)
		}
		t.wait(time.Millisecond + t.Tape.UpTo(t.plan.ttl/4))
	}
	renewals.stopped = true
	for !ended {
		t.wait(time.Second)
	}
	b.over = true
	ctx, stop := t.Limit(context.Background(), simkit.Pick(t.Tape, time.Duration(2), 1)*t.plan.ttl)
	defer stop()
	err := l.release(ctx, h, lost)
	t.Tracef("process %d releases %d: %v", t.id, h.at.rec.Token, err)
	if errors.Is(err, ErrLost) && lost == nil && t.plan.faultless() && !b.disturbed() {
		t.Violatef("L1", "process %d has lost the lock: %v", t.id, err)
	}
}

func (p *plan) faultless() bool { return p.faults == 0 && p.freezes == 0 }

func (t *thread) update(fence int64) {
	t.fence = fence
	t.simulation.updated++
	id := fmt.Sprintf("%d/%d", t.id, t.simulation.updated)
	_, err := t.bucket().Update(context.Background(), dataKey, func(_ context.Context, c Content) (Content, error) {
		was := string(c.Body)
		c.Body = []byte(was + id + " ")
		t.unresolved[id] = updateTry{t.id, was, string(c.Body), t.simulation.Now}
		return c, nil
	}, UpdateConfig{Create: true, Fence: fence, Tries: simkit.Pick(t.Tape, 50, 3)})
	t.Tracef("process %d: update %s: %v", t.id, id, err)
	last := t.unresolved[id]
	switch {
	case err == nil:
		t.outcomes[id] = true
		t.history.Add(t.id, dataKey, last.from, t.simulation.Now, linearizable.Applied(last.saw, last.made))
		delete(t.unresolved, id)
	case errors.Is(err, ErrUnsure):
		if t.plan.faultless() {
			t.Violatef("L6", "unexpected without faults: %v", err)
		}
	case errors.Is(err, ErrContended), errors.Is(err, ErrFenced), errors.Is(err, bucket.ErrUnavailable):
		t.outcomes[id] = false
		delete(t.unresolved, id)
	default:
		t.Violatef("L6", "update %s: %v", id, err)
	}
}

func updateMany(t *thread) {
	for range 1 + t.Tape.Choose(20) {
		t.update(0)
		t.wait(t.Tape.UpTo(t.plan.ttl / 10))
	}
}

func forceRelease(t *thread) {
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(t.objects)) {
		if key != dataKey {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return
	}
	key := keys[t.Tape.Choose(len(keys))]
	place := t.env().object("b", key)
	if t.plan.register {
		m, err := t.proc.mutex(Config{})
		if err != nil {
			panic(err)
		}
		place = m.leaseCell
	}
	now, err := place.readOnce(context.Background())
	if err != nil || !now.exists {
		return
	}
	t.force = true
	_, err = place.forceRelease(context.Background(), now.rec.Token)
	t.Tracef("an operator releases %s, %d: %v", key, now.rec.Token, err)
}

func (w *simulation) deleteLease() {
	w.Tracef("the lease's object is deleted")
	w.object(lockKey).exists = false
	w.disturb(lockKey, w.object(lockKey).token)
}
