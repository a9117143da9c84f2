package pawl

import (
	"context"
	"fmt"
	"time"
)

// invocation divides the time until Config.Deadline.
type invocation struct {
	claimBy       time.Time     // no handler starts later; zero: there is no deadline
	ledgerTimeout time.Duration // how long Run waits for the ledger after handlers were cancelled
	failAfter     time.Duration // a handler that was cancelled after this long used an attempt
}

const (
	// minInvocation leaves handlers 3.7 s. Lambda's default timeout, 3 s, is too short.
	minInvocation = 5 * time.Second
	// storeReserve is kept before the deadline to store results and to answer, or a quarter of
	// the time if that is less.
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

// untilDeadline returns a context that ends when Run must stop to claim.
func (p *Pawl) untilDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if p.claimBy.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, p.claimBy)
}

// Sweep processes the objects that are due, which no notification brings: retries,
// verifications, objects of workers that ended, and those that an audit found. It returns
// true when it has read every due row and processed it, and false if ctx or the time
// before Config.Deadline ended first. Call Sweep on a Pawl without sources, instead of
// Run, every minute for example. read, unless it is nil, is called from any goroutine each
// time the ledger has returned the due rows of a pipeline.
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
