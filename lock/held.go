package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlhq/pawl/cell"
)

// heldLease is a lease that a contender holds or held. It is not safe for concurrent use.
type heldLease struct {
	*contender
	at        version   // the holder's last write
	sent      time.Time // a time at which the write in at had not landed yet
	replaced  string    // nonce before the acquisition
	inherited bool      // the contender replaced its own write
	// renewal has an unknown outcome, or is nil.
	renewal  *leaseWrite
	renewErr error
	// released is called after a release has landed. It may be nil.
	released func(version)
}

const (
	renewAfter  = 3
	cancelParts = 8
)

func (h *heldLease) ttl() time.Duration { return h.at.rec.ttl() }

// margin is the time from the context's end to the lease's end.
func (h *heldLease) margin() time.Duration { return h.ttl() / cancelParts }

// remaining is the time until the context must end.
func (h *heldLease) remaining(now time.Time) time.Duration {
	return h.ttl() - h.margin() - elapsed(h.sent, now)
}

func (h *heldLease) due(now time.Time) time.Duration {
	return h.ttl()/renewAfter - elapsed(h.sent, now)
}

// renewBestEffort ignores errors that the next renewal can correct.
func (h *heldLease) renewBestEffort(ctx context.Context) error {
	now := h.clock.Now()
	left := h.remaining(now)
	if left <= 0 {
		return h.expiredError()
	}
	if h.due(now) > 0 {
		return nil
	}
	if err := h.renew(ctx, left); errors.Is(err, ErrLost) || ctx.Err() != nil {
		return err
	}
	return nil
}

// renewLoop renews the lease until it is lost, or until ctx ends, which is not an error.
func (h *heldLease) renewLoop(ctx context.Context, renewed func()) error {
	for {
		now := h.clock.Now()
		if h.remaining(now) <= 0 {
			return h.expiredError()
		}
		if wait := h.due(now); wait > 0 {
			if h.clock.Sleep(ctx, min(wait, clockPoll)) != nil {
				return nil
			}
			continue
		}
		err := h.renew(ctx, h.remaining(now))
		switch {
		case errors.Is(err, ErrLost):
			return err
		case ctx.Err() != nil:
			return nil
		case err == nil:
			renewed()
			continue
		}
		if h.clock.Sleep(ctx, min(h.ttl()/20, clockPoll, h.remaining(h.clock.Now()))) != nil {
			return nil
		}
	}
}

// clockPoll bounds every sleep, because timers stop while the machine sleeps.
const clockPoll = time.Second

// renew continues an earlier renewal whose outcome is unknown.
func (h *heldLease) renew(ctx context.Context, within time.Duration) error {
	ctx, stop := h.clock.Limit(ctx, within)
	defer stop()
	if h.renewal == nil {
		h.renewal = h.write(h.at, h.at.rec.renewed(h.nonce()))
	}
	r, err := h.renewal.run(ctx)
	if h.renewErr = err; err != nil {
		return err
	}
	if r.outcome != cell.Landed {
		h.renewal = nil
		return h.lostError(r.version)
	}
	h.at, h.sent, h.renewal = r.version, h.renewal.sent, nil
	return nil
}

func (h *heldLease) expiredError() error {
	if h.renewErr == nil {
		return fmt.Errorf("%s: %w: it was not renewed within its TTL of %v: this process was paused or blocked", h.contender, ErrLost, h.ttl())
	}
	return fmt.Errorf("%s: %w: it could not be renewed within its TTL of %v: %w", h.contender, ErrLost, h.ttl(), h.renewErr)
}

func (h *heldLease) lostError(now version) error {
	switch {
	case !now.exists:
		return fmt.Errorf("%s: %w: its object was deleted", h.contender, ErrLost)
	case now.rec.State == Released:
		return fmt.Errorf("%s: %w: it was released by another process; its token is now %d", h.contender, ErrLost, now.rec.Token)
	}
	return fmt.Errorf("%s: %w to %s", h.contender, ErrLost, now.rec.describeHolder())
}

// release returns ErrLost if the lease was lost before. A lease that was valid at the start was not lost: a
// takeover waits for the expiry. If several other holders followed meanwhile, release cannot distinguish them
// from a forced release, and returns ErrLost.
func (h *heldLease) release(ctx context.Context) error {
	good := h.remaining(h.clock.Now()) > 0
	for {
		r, err := h.write(h.at, h.at.rec.released(h.nonce(), h.clock.Now())).run(ctx)
		switch {
		case err != nil:
			h.ignoreOwn()
			return fmt.Errorf("%w; no other process can acquire it until its lease expires", err)
		case r.outcome == cell.Landed:
			if h.released != nil {
				h.released(r.version)
			}
			return nil
		case r.outcome == cell.Superseded:
			return nil
		case h.renewal != nil && r.exists && r.rec.Nonce == h.renewal.next.Nonce:
			h.at, h.renewal = r.version, nil // the renewal had landed
			continue
		case good && h.takenOver(&r.rec):
			return nil
		}
		return h.lostError(r.version)
	}
}

// takenOver reports whether the current holder acquired this lease after its expiry.
func (h *heldLease) takenOver(now *Record) bool {
	ours := slices.Contains(now.Before, h.at.rec.Nonce) || h.renewal != nil && slices.Contains(now.Before, h.renewal.next.Nonce)
	return ours && now.State == Held && now.Token == h.at.rec.Token+1
}

func (h *heldLease) releaseBestEffort(ctx context.Context) {
	ctx, stop := h.clock.Limit(context.WithoutCancel(ctx), cleanUpTimeout)
	defer stop()
	_ = h.release(ctx)
}

// ignoreOwn lets the same contender acquire the lease before it expires.
func (h *heldLease) ignoreOwn() {
	h.ignore(h.at.rec.Nonce)
	if h.renewal != nil {
		h.ignore(h.renewal.next.Nonce)
	}
}
