package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlhq/pawl/cell"
)

// hold is a lock that one holds, or held. It is not safe for concurrent use.
type hold struct {
	mutex *Mutex
	at    version   // as one wrote it last
	sent  time.Time // no later than when that landed
	// renewal is one of unknown fate.
	renewal *write
	// trouble is why the last renewal failed.
	trouble error
}

// The parts of a lease, as fractions of its time to live.
const (
	renewAfter  = 3 // a third: then it is renewed
	cancelParts = 8 // one eighth before it is over its context ends
)

func (h *hold) ttl() time.Duration { return h.at.rec.ttl() }

// margin is how long before the lease can expire the context ends.
func (h *hold) margin() time.Duration { return h.ttl() / cancelParts }

// left is how long the holder may go on yet.
func (h *hold) left(now time.Time) time.Duration { return h.ttl() - h.margin() - held(h.sent, now) }

// due is how long its renewal can wait yet.
func (h *hold) due(now time.Time) time.Duration { return h.ttl()/renewAfter - held(h.sent, now) }

// tend renews the lease if it is due, for one who waits for more than the lease.
func (h *hold) tend(ctx context.Context) error {
	now := h.mutex.clock.Now()
	left := h.left(now)
	switch {
	case left <= 0:
		return h.late()
	case h.due(now) > 0:
		return nil
	}
	return h.renew(ctx, left)
}

// tended is tend, and leaves it to the next time to renew what is not lost yet.
func (h *hold) tended(ctx context.Context) error {
	if err := h.tend(ctx); errors.Is(err, ErrLost) || ctx.Err() != nil {
		return err
	}
	return nil
}

// keep renews the lease until ctx ends, which is no error, or the lease is lost.
// It tells of each renewal.
func (h *hold) keep(ctx context.Context, renewed func()) error {
	m := h.mutex
	for {
		now := m.clock.Now()
		if h.left(now) <= 0 {
			return h.late()
		}
		if wait := h.due(now); wait > 0 {
			// Not longer than a moment: the machine may sleep, and its timers with it.
			if m.clock.Sleep(ctx, min(wait, glance)) != nil {
				return nil
			}
			continue
		}
		err := h.renew(ctx, h.left(now))
		switch {
		case errors.Is(err, ErrLost):
			return err
		case ctx.Err() != nil:
			return nil
		case err == nil:
			renewed()
			continue
		}
		if m.clock.Sleep(ctx, min(h.ttl()/20, glance, h.left(m.clock.Now()))) != nil {
			return nil
		}
	}
}

// glance is how often a holder looks at its clocks.
const glance = time.Second

// renew renews the lease. A renewal of unknown fate is gone on with.
func (h *hold) renew(ctx context.Context, within time.Duration) error {
	ctx, stop := h.mutex.clock.Limit(ctx, within)
	defer stop()
	if h.renewal == nil {
		h.renewal = h.mutex.place.write(h.at, h.at.rec.renewed(h.mutex.nonce()))
	}
	f, err := h.renewal.run(ctx)
	if h.trouble = err; err != nil {
		return err
	}
	if f.fate != cell.Landed {
		h.renewal = nil
		return h.lostTo(f.now)
	}
	h.at, h.sent, h.renewal = f.now, h.renewal.sent, nil
	return nil
}

// wrote reports that what is there was written by this holder, last or before.
func (h *hold) wrote(now version) bool {
	for _, nonce := range []string{h.at.rec.Nonce, h.renewing()} {
		if now.exists && nonce != "" && (now.rec.Nonce == nonce || slices.Contains(now.rec.Before, nonce)) {
			return true
		}
	}
	return false
}

// renewing is the nonce of a renewal of unknown fate, or nothing.
func (h *hold) renewing() string {
	if h.renewal == nil {
		return ""
	}
	return h.renewal.next.Nonce
}

// late is the error of a lease that was not renewed in time.
func (h *hold) late() error {
	if h.trouble == nil {
		return fmt.Errorf("%s: %w: it was not renewed within its %v: this process stood still, or waited for something else", h.mutex, ErrLost, h.ttl())
	}
	return fmt.Errorf("%s: %w: it could not be renewed within its %v: %w", h.mutex, ErrLost, h.ttl(), h.trouble)
}

func (h *hold) lostTo(now version) error {
	switch {
	case !now.exists:
		return fmt.Errorf("%s: %w: its object was deleted", h.mutex, ErrLost)
	case now.rec.State == Released:
		return fmt.Errorf("%s: %w: it was released by somebody else; its token is now %d", h.mutex, ErrLost, now.rec.Token)
	}
	return fmt.Errorf("%s: %w to %s", h.mutex, ErrLost, now.rec.holder())
}

// release gives the lock back. ErrLost says that it had been lost before, which
// harms nothing but what was done under it. Who has taken it over had to wait for
// the lease to end: what was held when the release began was not lost by that. If
// more has happened since, it cannot be told from a release by force.
func (h *hold) release(ctx context.Context) error {
	m := h.mutex
	good := h.left(m.clock.Now()) > 0
	for {
		w := m.place.write(h.at, h.at.rec.released(m.nonce(), m.clock.Now()))
		f, err := w.run(ctx)
		switch {
		case err != nil:
			h.disown()
			return fmt.Errorf("%w; nobody else can enter until its lease is over", err)
		case f.fate == cell.Landed:
			m.free(f.now)
			return nil
		case f.fate == cell.Superseded:
			return nil
		case h.renewal != nil && f.now.exists && f.now.rec.Nonce == h.renewal.next.Nonce:
			h.at, h.renewal = f.now, nil // it had landed after all
			continue
		case good && h.takenOver(f.now):
			return nil
		}
		return h.lostTo(f.now)
	}
}

// takenOver reports that the present holder waited for this lease to end: the lock
// was neither released by force nor deleted in between.
func (h *hold) takenOver(now version) bool {
	return h.wrote(now) && now.rec.State == Held && now.rec.Token == h.at.rec.Token+1
}

// disown lets the same Mutex have at once what could not be released.
func (h *hold) disown() {
	h.mutex.disown(h.at.rec.Nonce)
	if h.renewal != nil {
		h.mutex.disown(h.renewal.next.Nonce)
	}
}

// remember keeps what one has written last: the next Acquire needs no read.
func (m *Mutex) remember(v version) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = v
}
