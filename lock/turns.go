package lock

import (
	"context"
	"sync"
	"time"
)

// turns lets the goroutines that share a Mutex go one after the other, in the
// order in which they came, so that one at a time speaks to the store.
type turns struct {
	mu      sync.Mutex
	taken   bool
	waiting []chan struct{} // each is closed when its turn comes
}

// take waits for one's turn. It returns false if ctx ends first.
func (t *turns) take(ctx context.Context, c clock) bool {
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
	return true // it came at the same moment
}

// try takes the turn if it is free.
func (t *turns) try() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	free := !t.taken
	t.taken = true
	return free
}

// handOver calls prepare and gives the turn to the next goroutine, if one waits.
func (t *turns) handOver(prepare func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		return false
	}
	prepare()
	t.pass()
	return true
}

// pass gives the turn to the next goroutine, or frees it. The caller holds mu.
func (t *turns) pass() {
	if t.taken = len(t.waiting) > 0; t.taken {
		close(t.waiting[0])
		t.waiting = t.waiting[1:]
	}
}

// waited reports whether a goroutine waits for a turn.
func (t *turns) waited() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waiting) > 0
}

// end ends one's turn: it is the next one's.
func (t *turns) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pass()
}

// enter acquires the lock when one's turn has come.
func (m *Mutex) enter(ctx context.Context, wait bool) (*hold, error) {
	if !(wait && m.turns.take(ctx, m.clock) || !wait && m.turns.try()) {
		held := &HeldError{Lock: m.String()}
		if ctx.Err() != nil {
			return nil, held.gaveUp(ctx, context.Cause(ctx))
		}
		return nil, held
	}
	h, err := m.next(ctx, wait)
	if err != nil {
		m.turns.end()
	}
	return h, err
}

// next acquires the lock during our turn. It releases a lock that was left to this
// turn and cannot be had, because other processes could not enter while we keep it.
func (m *Mutex) next(ctx context.Context, wait bool) (*hold, error) {
	m.mu.Lock()
	left, chance := m.last, time.Duration(0)
	mine := left.exists && left.rec.State == Held
	if m.tired && wait && !mine {
		chance = m.polls().longest - m.clock.Now().Sub(m.freed.at)
		m.tired = false
	}
	m.mu.Unlock()
	if chance > 0 {
		if err := m.clock.Sleep(ctx, chance); err != nil {
			return nil, (&HeldError{Lock: m.String()}).gaveUp(ctx, err)
		}
	}
	err := context.Cause(ctx)
	if err == nil {
		var h *hold
		if h, err = m.acquire(ctx, wait); err == nil {
			return h, nil
		}
	}
	if mine {
		ctx, stop := m.clock.Limit(context.WithoutCancel(ctx), abandonTime)
		defer stop()
		_ = (&hold{mutex: m, at: left}).release(ctx) // at worst the lease runs out
	}
	return nil, err
}

// release ends a lease, and one's turn. If another goroutine waits for its turn
// the lock is left to it as it is.
func (m *Mutex) release(ctx context.Context, h *hold, lost error) error {
	leave := func() {
		h.disown()
		m.remember(h.at)
	}
	mine := lost == nil && h.renewal == nil && h.left(m.clock.Now()) > 0
	if mine && m.mayStay() && m.turns.handOver(leave) {
		return nil
	}
	defer m.turns.end()
	waited := m.turns.waited()
	err := h.release(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	if waited {
		m.tired, m.last = true, version{} // let other processes go first
	}
	return err
}

// free notes that the lock was released. The next one here needs no read. If the
// lock has been here for long that one waits for as long as others need to look.
func (m *Mutex) free(v version) {
	m.remember(v)
	stay := m.mayStay()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.freed, m.tired = freed{v.rec.Nonce, m.clock.Now()}, m.tired || !stay
}

// mayStay reports that the lock may stay in this process: for as long as its TTL,
// but for ten times as long as the break after it. Then others have a chance: the
// next one here waits for longer than they look.
func (m *Mutex) mayStay() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clock.Now().Sub(m.since) < max(m.holder.ttl(), 10*m.polls().longest)
}

// took notes since when this process has the lock, without a time in which all
// others have looked.
func (m *Mutex) took(from version) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock.Now()
	again := from.exists && from.rec.Nonce == m.freed.nonce && now.Sub(m.freed.at) < m.polls().longest
	if m.since.IsZero() || !again && !m.disowned[from.rec.Nonce] {
		m.since = now
	}
	clear(m.disowned) // all of these are gone, and never come back
}
