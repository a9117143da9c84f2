package lock

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/cell"
)

// leaseWrite sends one record of a lease, by the rules of [cell.Write]. After a refusal it reads
// the lease, and classify determines the outcome.
//
// The TTL of a lease starts before its write was sent. If a read shows that the write has not
// landed, the TTL starts before that read.
type leaseWrite struct {
	*leaseCell
	sending cell.Write
	base    version // the version to replace
	next    Record
	body    []byte
	// sent is a time before the write landed.
	sent time.Time
	// unclear is set if the last run ended without an outcome, so that a copy of the write may
	// still land.
	unclear bool
	// bound is the timeout of the last request.
	bound  time.Duration
	result writeResult
}

// writeResult is the outcome of a write, and the lease in the last response.
type writeResult struct {
	outcome cell.Outcome
	observation
}

func (l *leaseCell) write(base version, next Record) *leaseWrite {
	w := &leaseWrite{leaseCell: l, base: base, next: next, body: next.encode()}
	w.sending = cell.Write{Send: w.send, Look: w.look, Resolves: 1}
	return w
}

// run sends the write until its outcome is known. It returns an error if ctx ends first, or if the
// store refuses the write permanently. The caller may call it again.
func (w *leaseWrite) run(ctx context.Context) (writeResult, error) {
	if w.sent.IsZero() {
		w.sent = w.clock.Now()
	}
	w.sending.Pace = w.retryPace(w.clock.Now())
	outcome, err := w.sending.Run(ctx)
	w.unclear = outcome == cell.Unclear
	if err != nil {
		return writeResult{}, fmt.Errorf("write the lock %s: %w", w, err)
	}
	w.result.outcome = outcome
	return w.result, nil
}

// send writes once, on the condition that the lease is still base.
func (w *leaseWrite) send(ctx context.Context) error {
	ctx, stop := w.limit(ctx)
	defer stop()
	asked := w.clock.Now()
	etag, err := w.cell.Write(ctx, w.base.etag, w.body)
	if err == nil {
		now := w.clock.Now()
		w.lastWrite.Store(int64(now.Sub(asked)))
		w.result.observation = observation{version{exists: true, etag: etag, rec: w.next}, now}
	}
	return err
}

// look reads the lease and classifies the write. If the write has not landed, the next request
// replaces the version that was read.
func (w *leaseWrite) look(ctx context.Context, answer error) (cell.Outcome, error) {
	var asked time.Time
	err := w.retryUnavailable(ctx, func() (err error) {
		asked = w.clock.Now()
		ctx, stop := w.limit(ctx)
		defer stop()
		w.result.observation, err = w.readOnce(ctx)
		return err
	})
	if err != nil {
		return cell.Unclear, fmt.Errorf("%w; read it: %w", answer, err)
	}
	outcome := classify(w.result.version, w.base, w.next.Nonce)
	if outcome == cell.Unclear {
		w.base, w.sent = w.result.version, asked
	}
	return outcome, nil
}

// limit returns a context with the timeout of one request. The first timeout is TTL/8, but at least
// 1 s and at most 2 s. Each further timeout is twice the previous one, up to callTimeout. If the
// TTL is at least 3 s, enough time remains after a timeout to read and to send again. For a slow
// store, the timeout is at least twice the duration of the last write.
func (w *leaseWrite) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	first := min(max(w.next.ttl()/8, time.Second), 2*time.Second)
	w.bound = min(max(2*w.bound, first, time.Duration(2*w.lastWrite.Load())), callTimeout)
	return w.clock.Limit(ctx, w.bound)
}
