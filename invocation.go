package pawl

import (
	"context"
	"fmt"
	"time"
)

// invocation has the limits that divide the time until Config.Deadline.
type invocation struct {
	claimBy       time.Time     // no handler starts later; zero: no deadline
	ledgerTimeout time.Duration // how long Run waits for the ledger after it has cancelled handlers
	failAfter     time.Duration // a handler that is cancelled after this time uses up an attempt
}

const (
	// minInvocation is the minimum time from New to the deadline. It leaves 3.7 s for
	// handlers. Lambda's default timeout of 3 s is too short.
	minInvocation = 5 * time.Second
	// storeReserve is the time before the deadline in which Pawl stores results and answers
	// deliveries. Pawl reserves at most a quarter of the time until the deadline.
	storeReserve = 2 * time.Second
)

// divideTime divides the time from now to the deadline, and sets ShutdownTimeout.
func (c *Config) divideTime(now time.Time) invocation {
	if c.Deadline.IsZero() {
		return invocation{ledgerTimeout: 10 * time.Second}
	}
	total := c.Deadline.Sub(now)
	c.ShutdownTimeout = max(total/4-storeReserve, 0)
	return invocation{claimBy: c.Deadline.Add(-total / 4), ledgerTimeout: min(storeReserve, total/4) - 500*time.Millisecond, failAfter: total / 2}
}

// untilDeadline returns a context that ends when Run must stop claiming.
func (p *Pawl) untilDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if p.claimBy.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, p.claimBy)
}

// Sweep processes the objects that are due without a notification: retries, verifications,
// expired leases, and losses that an audit found. It returns true after it has processed
// every due row, and false if ctx or the time before Config.Deadline ends first. Call
// Sweep on a Pawl without sources, instead of Run, for example every minute. If read is
// not nil, Sweep calls it, from any goroutine, after each successful query for due rows of
// a pipeline.
func (p *Pawl) Sweep(ctx context.Context, read func(pipeline string)) (complete bool, err error) {
	if p.cfg.NoSweep {
		return false, fmt.Errorf("%w: Sweep needs a Pawl without NoSweep", ErrConfig)
	}
	ctx, end := p.untilDeadline(ctx)
	defer end()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	p.worker.OnDue(read)
	ended := make(chan error, 1)
	go func() { ended <- p.worker.Run(ctx) }()
	complete = p.worker.SweepOnce(ctx)
	stop()
	err = <-ended
	p.cfg.Memory.save(p.worker.Outages())
	return complete, err
}
