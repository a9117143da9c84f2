package lock

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Lease is a lock that is held. Release it.
type Lease struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	stop   context.CancelFunc // of the renewals
	done   chan struct{}      // the renewals have ended
	token  int64
	period time.Duration // from a write to the end of the context
	// release gives the lock back.
	release func(ctx context.Context, h *hold, lost error) error

	mu   sync.Mutex
	hold *hold     // the renewals' own until done
	sent time.Time // of the hold
	lost error
}

// lease is what is acquired, renewed from then on.
func lease(ctx context.Context, wait bool, acquire func(context.Context, bool) (*hold, error)) (*Lease, error) {
	h, err := acquire(ctx, wait)
	if err != nil {
		return nil, err
	}
	return keep(ctx, h), nil
}

// keep begins to renew the lease.
func keep(ctx context.Context, h *hold) *Lease {
	l := &Lease{hold: h, done: make(chan struct{}), token: h.at.rec.Token, period: h.ttl() - h.margin()}
	l.release = func(ctx context.Context, h *hold, _ error) error { return h.release(ctx) }
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	renewals, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	l.renewed()
	m, ttl := h.mutex, h.ttl()
	go func() {
		defer close(l.done)
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			l.watch(renewals, m, ttl)
		}()
		if err := h.keep(renewals, l.renewed); err != nil {
			l.lose(err)
		}
		stop()
		<-watched
	}()
	return l
}

// watch ends a lease whose renewal stands still in the middle, for its time-out
// sleeps when the machine does. All else keep notices before, and says more of it.
func (l *Lease) watch(ctx context.Context, m *Mutex, ttl time.Duration) {
	for {
		l.mu.Lock()
		left := (ttl+l.period)/2 - held(l.sent, m.clock.Now())
		l.mu.Unlock()
		if left <= 0 {
			l.lose(fmt.Errorf("%s: %w: it was not renewed within its %v: the machine stood still, or the store", m, ErrLost, ttl))
			l.stop()
			return
		}
		if m.clock.Sleep(ctx, min(left, glance)) != nil {
			return
		}
	}
}

// lose ends the lease. The first reason is kept.
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
	l.sent = l.hold.sent
}

// Token is the fencing token: higher than that of every holder before.
func (l *Lease) Token() int64 { return l.token }

// Context ends with the lease: with a cause that matches ErrLost if it is lost or
// was not renewed in time, an eighth of its TTL before anybody else can enter, or
// within a second after the machine has slept for longer than that.
// It ends with the context that was given to Acquire, too, and with Release.
func (l *Lease) Context() context.Context { return l.ctx }

// Deadline is when the context ends if no renewal succeeds any more. It moves on
// with each renewal.
func (l *Lease) Deadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent.Add(l.period)
}

// Release gives the lock back, with 1 request, and waits for the renewals to
// end. An error that matches ErrLost says that the lock had been lost before, or
// that it took so long to release that others came and went, and any other that
// no holder can enter until the lease expires. Where another goroutine
// waits for the same Mutex nothing is sent: what was lost since the last renewal,
// by force, that one learns. If ctx has ended already it takes 5 seconds at most.
// It works once; after that it returns an error.
func (l *Lease) Release(ctx context.Context) error {
	l.stop()
	<-l.done
	l.cancel(nil)
	l.mu.Lock()
	h, lost := l.hold, l.lost
	l.hold = nil
	l.mu.Unlock()
	if h == nil {
		return fmt.Errorf("%w: it was released before", ErrConfig)
	}
	if ctx.Err() != nil {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(context.WithoutCancel(ctx), abandonTime)
		defer stop()
	}
	// A lease that was not renewed in time may still be ours.
	err := l.release(ctx, h, lost)
	if lost != nil {
		return lost
	}
	return err
}
