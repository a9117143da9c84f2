package worker

import (
	"context"
	"sync/atomic"
	"time"
)

// lease is the context of an attempt. It ends at the lease's deadline by the
// clock, whoever asks, and not only when its timer gets a turn: a process that
// was stopped goes on with whatever is ready first, and that may be the task.
type lease struct {
	context.Context
	cancel   context.CancelCauseFunc
	deadline atomic.Pointer[time.Time]
	timer    *time.Timer
}

// newLease returns a lease that may be past its deadline already.
func newLease(parent context.Context, deadline time.Time) *lease {
	l := &lease{}
	l.Context, l.cancel = context.WithCancelCause(parent)
	l.deadline.Store(&deadline)
	l.timer = time.AfterFunc(time.Until(deadline), func() { l.cancel(ErrLeaseLost) })
	return l
}

// Err implements [context.Context]. So [context.Cause] is exact as well.
func (l *lease) Err() error {
	if !time.Now().Before(*l.deadline.Load()) {
		l.cancel(ErrLeaseLost)
	}
	return l.Context.Err()
}

// extend prolongs a lease that has not ended.
func (l *lease) extend(deadline time.Time) {
	if l.Err() == nil && l.timer.Stop() {
		l.deadline.Store(&deadline)
		l.timer.Reset(time.Until(deadline))
	}
}

// end lets go of it.
func (l *lease) end() {
	l.timer.Stop()
	l.cancel(nil)
}
