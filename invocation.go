package pawl

import (
	"context"
	"fmt"
	"time"
)

// invocation divides the time until Config.Deadline.
type invocation struct {
	claimBy       time.Time     // no handler starts later; zero: no deadline
	ledgerTimeout time.Duration // for the ledger, after handlers were cancelled
	failAfter     time.Duration // a handler cancelled later uses up an attempt
}

const (
	// At least 3.7 s must be left for handlers. Lambda's default timeout of 3 s is too short.
	minInvocation = 5 * time.Second
	// Pawl stores results and answers deliveries in this time before the deadline, or in a quarter of the
	// total.
	storeReserve = 2 * time.Second
)

// divideTime also sets ShutdownTimeout.
func (c *Config) divideTime(now time.Time) invocation {
	if c.Deadline.IsZero() {
		return invocation{ledgerTimeout: 10 * time.Second}
	}
	total := c.Deadline.Sub(now)
	c.ShutdownTimeout = max(total/4-storeReserve, 0)
	return invocation{claimBy: c.Deadline.Add(-total / 4), ledgerTimeout: min(storeReserve, total/4) - 500*time.Millisecond, failAfter: total / 2}
}

func (p *Pawl) untilDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if p.claimBy.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, p.claimBy)
}

// Sweep processes the objects that are due without a notification: retries, verifications, expired leases,
// and losses that an audit found. It returns true after it has processed every due row. Call it instead of
// Run, on a Pawl without sources. If read is not nil, Sweep calls it, from any goroutine, after each
// successful query for due rows of a pipeline.
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
