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
	// release gives the lock back.
	release func(ctx context.Context, h *hold, lost error) error

	mu       sync.Mutex
	hold     *hold // the renewals' own until done
	deadline time.Time
	lost     error
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
	l := &Lease{hold: h, done: make(chan struct{}), token: h.at.rec.Token}
	l.release = func(ctx context.Context, h *hold, _ error) error { return h.release(ctx) }
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	renewals, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	l.renewed()
	go func() {
		defer close(l.done)
		if err := h.keep(renewals, l.renewed); err != nil {
			l.mu.Lock()
			l.lost = err
			l.mu.Unlock()
			l.cancel(err)
		}
	}()
	return l
}

func (l *Lease) renewed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deadline = l.hold.sent.Add(l.hold.ttl() - l.hold.margin())
}

// Token is the fencing token: higher than that of every holder before.
func (l *Lease) Token() int64 { return l.token }

// Context ends with the lease: with a cause that matches ErrLost if it is lost or
// was not renewed in time, an eighth of its TTL before anybody else can enter.
// It ends with the context that was given to Acquire, too, and with Release.
func (l *Lease) Context() context.Context { return l.ctx }

// Deadline is when the context ends if no renewal succeeds any more. It moves on
// with each renewal.
func (l *Lease) Deadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deadline
}

// Release gives the lock back, with 1 request, and waits for the renewals to
// end. An error that matches ErrLost says that the lock had been lost before, and
// any other that nobody can enter until the lease is over. If ctx has ended
// already it takes 5 seconds at most. It works once; after that it returns an error.
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
	// What was not renewed in time may be one's own still.
	err := l.release(ctx, h, lost)
	if lost != nil {
		return lost
	}
	return err
}
