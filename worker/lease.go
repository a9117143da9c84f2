package worker

import (
	"context"
	"sync/atomic"
	"time"
)

// lease is the context of an attempt. After a pause of the process, the task may run before the
// timer does, so Err compares the deadline with the clock.
type lease struct {
	context.Context
	cancel   context.CancelCauseFunc
	deadline atomic.Pointer[time.Time]
	timer    *time.Timer
}

func newLease(parent context.Context, deadline time.Time) *lease {
	l := &lease{}
	l.Context, l.cancel = context.WithCancelCause(parent)
	l.deadline.Store(&deadline)
	l.timer = time.AfterFunc(time.Until(deadline), func() { l.cancel(ErrLeaseLost) })
	return l
}

// Err also makes [context.Cause] exact.
func (l *lease) Err() error {
	if !time.Now().Before(*l.deadline.Load()) {
		l.cancel(ErrLeaseLost)
	}
	return l.Context.Err()
}

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
