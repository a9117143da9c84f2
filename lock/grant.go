package lock

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Lease is a lock that this process holds. A goroutine renews it until Release.
type Lease struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	stop    context.CancelFunc
	done    chan struct{} // closed when the renewals have ended
	token   int64
	period  time.Duration // from the start of a write to the end of the context
	release func(ctx context.Context, h *heldLease, lost error) error

	mu   sync.Mutex
	held *heldLease // until done is closed, only the renewal goroutine uses it
	sent time.Time  // equal to held.sent
	lost error
}

// If err is not nil, grant only returns err.
func grant(ctx context.Context, h *heldLease, err error) (*Lease, error) {
	if err != nil {
		return nil, err
	}
	l := &Lease{held: h, done: make(chan struct{}), token: h.at.rec.Token, period: h.ttl() - h.margin()}
	l.release = func(ctx context.Context, h *heldLease, _ error) error { return h.release(ctx) }
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	renewals, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	l.renewed()
	c, ttl := h.contender, h.ttl()
	go func() {
		defer close(l.done)
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			l.watch(renewals, c, ttl)
		}()
		if err := h.renewLoop(renewals, l.renewed); err != nil {
			l.lose(err)
		}
		stop()
		<-watched
	}()
	return l, nil
}

// watch ends a lease whose renewal hangs: the timeout of a request stops while the machine sleeps.
// Otherwise renewLoop ends the lease earlier, with a better message.
func (l *Lease) watch(ctx context.Context, c *contender, ttl time.Duration) {
	for {
		l.mu.Lock()
		left := (ttl+l.period)/2 - elapsed(l.sent, c.clock.Now())
		l.mu.Unlock()
		if left <= 0 {
			l.lose(fmt.Errorf("%s: %w: it was not renewed within its TTL of %v: the machine was suspended, or the store did not answer", c, ErrLost, ttl))
			l.stop()
			return
		}
		if c.clock.Sleep(ctx, min(left, clockPoll)) != nil {
			return
		}
	}
}

func (l *Lease) lose(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost == nil {
		l.lost = err
		l.cancel(err)
	}
}

func (l *Lease) renewed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent = l.held.sent
}

// Token returns the fencing token. It is higher than the token of every earlier holder.
func (l *Lease) Token() int64 { return l.token }

// Context returns the context of the lease. It ends an eighth of the TTL before another process can
// acquire the lock. Its cause matches ErrLost if the lease was lost or not renewed. After a longer
// sleep of the machine, it ends within a second. Release and the end of Acquire's context also end
// it.
func (l *Lease) Context() context.Context { return l.ctx }

// Deadline returns when the context ends if no further renewal succeeds.
func (l *Lease) Deadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent.Add(l.period)
}

// Release releases the lock with 1 request, or passes it to a waiting goroutine without a request.
// It returns ErrLost if the lock was lost before, or if several holders followed during a slow
// release. After any other error, other processes wait until the lease expires. If ctx has ended,
// Release takes at most 5 seconds. A second Release is an error.
func (l *Lease) Release(ctx context.Context) error {
	l.stop()
	<-l.done
	l.cancel(nil)
	l.mu.Lock()
	h, lost := l.held, l.lost
	l.held = nil
	l.mu.Unlock()
	if h == nil {
		return fmt.Errorf("%w: the lease was already released", ErrConfig)
	}
	if ctx.Err() != nil {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(context.WithoutCancel(ctx), cleanUpTimeout)
		defer stop()
	}
	// A lease that was not renewed in time may still be held.
	err := l.release(ctx, h, lost)
	if lost != nil {
		return lost
	}
	return err
}
