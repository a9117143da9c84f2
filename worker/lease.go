package worker

import (
	"context"
	"sync/atomic"
	"time"
)

// lease is the context of an attempt. Err compares the deadline with the clock, instead of
// relying on the timer. After a pause of the process, the task may run before the timer
// does.
type lease struct {
	context.Context
	cancel   context.CancelCauseFunc
	deadline atomic.Pointer[time.Time]
	timer    *time.Timer
}

// newLease returns a lease. Its deadline may have passed already.
func newLease(parent context.Context, deadline time.Time) *lease {
	l := &lease{}
	l.Context, l.cancel = context.WithCancelCause(parent)
	l.deadline.Store(&deadline)
	l.timer = time.AfterFunc(time.Until(deadline), func() { l.cancel(ErrLeaseLost) })
	return l
}

// Err implements [context.Context]. It makes [context.Cause] exact as well.
func (l *lease) Err() error {
	if !time.Now().Before(*l.deadline.Load()) {
		l.cancel(ErrLeaseLost)
	}
	return l.Context.Err()
}

// extend moves the deadline of a lease that has not ended.
func (l *lease) extend(deadline time.Time) {
	if l.Err() == nil && l.timer.Stop() {
		l.deadline.Store(&deadline)
		l.timer.Reset(time.Until(deadline))
	}
}

func (l *lease) end() {
	l.timer.Stop()
	l.cancel(nil)
}
