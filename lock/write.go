package lock

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/cell"
)

// leaseWrite writes one record of a lease. The TTL starts before the write was sent, or before a
// read that shows that it has not landed.
type leaseWrite struct {
	*leaseCell
	sending cell.Write
	base    version
	next    Record
	body    []byte
	sent    time.Time
	// unclear is set if a copy of the write may still land.
	unclear bool
	// bound is the timeout of the last request.
	bound  time.Duration
	result writeResult
}

type writeResult struct {
	outcome cell.Outcome
	observation
}

func (l *leaseCell) write(base version, next Record) *leaseWrite {
	w := &leaseWrite{leaseCell: l, base: base, next: next, body: next.encode()}
	w.sending = cell.Write{Send: w.send, Look: w.look, Resolves: 1}
	return w
}

// run sends the write until its outcome is known, ctx ends, or the store refuses it. It can be
// called again.
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

// After a read that does not show the write, the next request replaces the version that was read.
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

// limit sets the timeout of one request: TTL/8, from 1 s to 2 s, then twice as much, up to
// callTimeout. With a TTL of at least 3 s, enough time remains to read and to send again. If the
// store is slow, the timeout is at least twice the duration of the last write.
func (w *leaseWrite) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	first := min(max(w.next.ttl()/8, time.Second), 2*time.Second)
	w.bound = min(max(2*w.bound, first, time.Duration(2*w.lastWrite.Load())), callTimeout)
	return w.clock.Limit(ctx, w.bound)
}
