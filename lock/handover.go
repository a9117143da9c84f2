package lock

import (
	"context"
	"sync"
	"time"
)

// turnQueue serializes goroutines that share a lock, so that only one of them sends requests.
type turnQueue struct {
	mu      sync.Mutex
	taken   bool
	waiting []chan struct{} // closed when the turn starts
}

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

func (t *turnQueue) tryTurn() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	free := !t.taken
	t.taken = true
	return free
}

// handOver reports false if no goroutine waits.
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

// The caller holds mu.
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

// maxHandOvers bounds the handovers before other processes can acquire the lock.
const maxHandOvers = 1000

type tenure struct {
	since      time.Time // acquisition from another process
	handOvers  int
	yieldNext  bool   // the next goroutine must let other processes go first
	nonce      string // of the last release
	releasedAt time.Time
}

// mayHandOver reports whether the lock may stay in this process. The pause that follows is at most a
// tenth of that time. The caller holds mu.
func (m *Mutex) mayHandOver() bool {
	return m.tenure.handOvers < maxHandOvers && m.clock.Now().Sub(m.tenure.since) < max(m.holder.ttl(), 10*maxPoll)
}

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
		if inherited.exists { // no other process could acquire the lock
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

func (m *Mutex) heldAt(at version) *heldLease {
	return &heldLease{contender: &m.contender, at: at, released: m.noteReleased}
}

// tryAcquire needs no read if this Mutex wrote the last known version.
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

// A new tenure starts unless this process released the lock so recently that other processes may
// not have seen it free.
func (m *Mutex) noteAcquired(h *heldLease) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock.Now()
	again := h.replaced == m.tenure.nonce && now.Sub(m.tenure.releasedAt) < maxPoll
	if m.tenure.since.IsZero() || !again && !h.inherited {
		m.tenure.since, m.tenure.handOvers = now, 0
	}
}

func (m *Mutex) noteReleased(v version) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cached, m.tenure.nonce, m.tenure.releasedAt = v, v.rec.Nonce, m.clock.Now()
	m.tenure.yieldNext = m.tenure.yieldNext || !m.mayHandOver()
}

// release passes the lease to a waiting goroutine, or releases it.
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
