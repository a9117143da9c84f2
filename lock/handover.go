package lock

import (
	"context"
	"sync"
	"time"
)

// turnQueue lets goroutines that share a lock use it one after the other, in order of arrival, so
// that only one of them sends requests to the store.
type turnQueue struct {
	mu      sync.Mutex
	taken   bool
	waiting []chan struct{} // each channel is closed when its turn starts
}

// waitTurn waits for the caller's turn. It reports false if ctx ends first.
func (t *turnQueue) waitTurn(ctx context.Context, c clock) bool {
	t.mu.Lock()
	if !t.taken {
		t.taken = true
		t.mu.Unlock()
		return true
	}
	mine := make(chan struct{})
	t.waiting = append(t.waiting, mine)
	t.mu.Unlock()
	if c.Await(ctx, mine) {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, one := range t.waiting {
		if one == mine {
			t.waiting = append(t.waiting[:i], t.waiting[i+1:]...)
			return false
		}
	}
	return true // the turn started at the same moment
}

// tryTurn takes the turn if it is free.
func (t *turnQueue) tryTurn() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	free := !t.taken
	t.taken = true
	return free
}

// handOver calls prepare, and passes the turn to the next waiting goroutine. It reports false if no
// goroutine waits.
func (t *turnQueue) handOver(prepare func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		return false
	}
	prepare()
	t.pass()
	return true
}

// pass passes the turn to the next goroutine, or frees it. The caller holds mu.
func (t *turnQueue) pass() {
	if t.taken = len(t.waiting) > 0; t.taken {
		close(t.waiting[0])
		t.waiting = t.waiting[1:]
	}
}

func (t *turnQueue) contended() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waiting) > 0
}

func (t *turnQueue) endTurn() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pass()
}

// maxHandOvers is the maximum number of handovers between goroutines of one process before other
// processes can acquire the lock.
const maxHandOvers = 1000

// tenure describes how long one process has kept a Mutex.
type tenure struct {
	since      time.Time // when this process acquired the lock from another one
	handOvers  int
	yieldNext  bool   // the next goroutine must first let other processes acquire the lock
	nonce      string // nonce of the last release
	releasedAt time.Time
}

// mayHandOver reports whether the lock may stay in this process. It may stay for at most
// maxHandOvers handovers, and for at most max(TTL, 20 s). The pause that follows is at most a tenth
// of that time. The caller holds mu.
func (m *Mutex) mayHandOver() bool {
	return m.tenure.handOvers < maxHandOvers && m.clock.Now().Sub(m.tenure.since) < max(m.holder.ttl(), 10*maxPoll)
}

// enter waits for the goroutine's turn, and acquires the lock.
func (m *Mutex) enter(ctx context.Context, wait bool) (*heldLease, error) {
	busy := &HeldError{Lock: m.String()}
	if !(wait && m.turns.waitTurn(ctx, m.clock) || !wait && m.turns.tryTurn()) {
		if ctx.Err() != nil {
			return nil, busy.withCause(ctx, context.Cause(ctx))
		}
		return nil, busy
	}
	inherited, pause := m.beginTurn(wait)
	h, err := m.acquireInTurn(ctx, wait, pause)
	if err != nil {
		if inherited.exists { // no other process could acquire the lock while we keep it
			m.heldAt(inherited).releaseBestEffort(ctx)
		}
		m.turns.endTurn()
	}
	return h, err
}

func (m *Mutex) acquireInTurn(ctx context.Context, wait bool, pause time.Duration) (*heldLease, error) {
	if pause > 0 {
		if err := m.clock.Sleep(ctx, pause); err != nil {
			return nil, (&HeldError{Lock: m.String()}).withCause(ctx, err)
		}
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return m.acquire(ctx, wait, m.tryAcquire)
}

// beginTurn returns the held version that the previous goroutine passed on, if any, and the time
// for which this turn must let other processes go first.
func (m *Mutex) beginTurn(wait bool) (inherited version, pause time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.cached.exists && m.cached.rec.State == Held:
		return m.cached, 0
	case wait && m.tenure.yieldNext:
		m.tenure.yieldNext = false
		return version{}, maxPoll - m.clock.Now().Sub(m.tenure.releasedAt)
	}
	return version{}, 0
}

// heldAt returns a heldLease for a version that this Mutex wrote.
func (m *Mutex) heldAt(at version) *heldLease {
	return &heldLease{contender: &m.contender, at: at, released: m.noteReleased}
}

// tryAcquire tries once to acquire the lock. If this Mutex wrote the last known version, tryAcquire
// starts with it, and needs no read.
func (m *Mutex) tryAcquire(ctx context.Context) (attempt, error) {
	m.mu.Lock()
	now := observation{m.cached, m.clock.Now()}
	m.cached = version{}
	m.mu.Unlock()
	if !now.exists {
		var err error
		if now, err = m.read(ctx); err != nil {
			return attempt{}, err
		}
	}
	a, err := m.contender.tryAcquire(ctx, &now)
	if a.held != nil {
		a.held.released = m.noteReleased
		m.noteAcquired(a.held)
	}
	return a, err
}

// noteAcquired starts a new tenure, unless this process held the lock before and released it so
// recently that other processes may not have seen it free.
func (m *Mutex) noteAcquired(h *heldLease) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock.Now()
	again := h.replaced == m.tenure.nonce && now.Sub(m.tenure.releasedAt) < maxPoll
	if m.tenure.since.IsZero() || !again && !h.inherited {
		m.tenure.since, m.tenure.handOvers = now, 0
	}
}

// noteReleased stores the released version, so that the next acquisition in this process needs no
// read.
func (m *Mutex) noteReleased(v version) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cached, m.tenure.nonce, m.tenure.releasedAt = v, v.rec.Nonce, m.clock.Now()
	m.tenure.yieldNext = m.tenure.yieldNext || !m.mayHandOver()
}

// release ends a lease and its goroutine's turn. If another goroutine waits for its turn, release
// passes the lease to it without a request.
func (m *Mutex) release(ctx context.Context, h *heldLease, lost error) error {
	m.mu.Lock()
	stays := lost == nil && h.renewal == nil && h.remaining(m.clock.Now()) > 0 && m.mayHandOver()
	m.mu.Unlock()
	if stays && m.turns.handOver(func() { m.passLease(h) }) {
		return nil
	}
	defer m.turns.endTurn()
	contended := m.turns.contended()
	err := h.release(ctx)
	if contended {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.tenure.yieldNext, m.cached = true, version{}
	}
	return err
}

func (m *Mutex) passLease(h *heldLease) {
	h.ignoreOwn()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cached = h.at
	m.tenure.handOvers++
}
