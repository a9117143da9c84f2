package lock

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/pawlhq/pawl/cell"
)

type contender struct {
	leaseCell
	holder Record // identifies this process

	mu      sync.Mutex
	watch   watch
	ignored map[string]bool // nonces of our own writes, under which no goroutine holds the lease
}

type watch struct {
	nonce string
	since time.Time
}

const (
	clockTolerance = 5
	// maxLateAnswers bounds consecutive acquisitions whose response arrives after the lease's end.
	maxLateAnswers = 3
	cleanUpTimeout = 5 * time.Second
)

// expiry returns the time until this process can acquire the lease, at most 0 if it can now.
func (c *contender) expiry(now observation) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watch.nonce != now.rec.Nonce {
		c.watch = watch{now.rec.Nonce, now.at}
	}
	if now.free() || c.ignored[now.rec.Nonce] {
		return 0
	}
	return now.rec.ttl() + now.rec.ttl()*clockTolerance/100 - c.clock.Now().Sub(c.watch.since)
}

// tryAcquire sets now to the version that it finds.
func (c *contender) tryAcquire(ctx context.Context, now *observation) (attempt, error) {
	for late := 0; ; {
		if left := c.expiry(*now); left > 0 {
			return attempt{retry: left, busy: c.heldBy(&now.rec)}, nil
		}
		w := c.write(now.version, c.claim(now.version))
		r, err := w.run(ctx)
		if err != nil {
			c.cleanUpLateWrite(ctx, w)
			return attempt{}, err
		}
		if *now = r.observation; r.outcome != cell.Landed {
			continue // another process was faster
		}
		h := &heldLease{contender: c, at: r.version, sent: w.sent, replaced: w.base.rec.Nonce}
		if h.remaining(c.clock.Now()) > 0 {
			h.inherited = c.forgetIgnored(h.replaced)
			return attempt{held: h}, nil
		}
		c.ignore(w.next.Nonce) // too late
		if late++; late == maxLateAnswers {
			h.releaseBestEffort(ctx)
			return attempt{}, fmt.Errorf("acquire the lock %s: %w (%v): choose a longer TTL", c, ErrSlow, h.ttl())
		}
	}
}

func (c *contender) heldBy(r *Record) *HeldError { return &HeldError{Lock: c.String(), Record: *r} }

func (c *contender) claim(now version) Record {
	if !now.exists {
		return first(&c.holder, c.nonce(), c.clock.Now())
	}
	return now.rec.acquired(&c.holder, c.nonce(), c.clock.Now())
}

// expire releases an expired lease, so that its holder cannot renew it. Otherwise it returns the
// time until expiry.
func (c *contender) expire(ctx context.Context, now *observation) (time.Duration, error) {
	for {
		left := c.expiry(*now)
		if left > 0 || now.free() {
			return max(left, 0), nil
		}
		r, err := c.write(now.version, now.rec.forced(c.nonce(), c.clock.Now())).run(ctx)
		if err != nil {
			return 0, err
		}
		*now = r.observation
	}
}

// cleanUpLateWrite releases the lease if the write of a canceled acquisition has landed. If it
// fails, only this contender can acquire the lease before its expiry.
func (c *contender) cleanUpLateWrite(ctx context.Context, w *leaseWrite) {
	if !w.unclear {
		return
	}
	c.ignore(w.next.Nonce)
	ctx, stop := c.clock.Limit(context.WithoutCancel(ctx), cleanUpTimeout)
	defer stop()
	if now, err := c.readOnce(ctx); err == nil && now.exists && now.rec.Nonce == w.next.Nonce {
		_ = (&heldLease{contender: c, at: now.version}).release(ctx)
	}
}

func (c *contender) ignore(nonce string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ignored == nil {
		c.ignored = map[string]bool{}
	}
	c.ignored[nonce] = true
}

// After an acquisition, none of the ignored nonces can become current. forgetIgnored reports
// whether the replaced nonce was among them.
func (c *contender) forgetIgnored(replaced string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer clear(c.ignored)
	return c.ignored[replaced]
}
