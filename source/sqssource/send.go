package sqssource

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

func (f *inFlight) send(ctx context.Context, stop <-chan struct{}) {
	var calls errgroup.Group
	calls.SetLimit(f.limits.calls)
	retry := time.NewTicker(time.Second)
	defer retry.Stop()
	for stopped := false; !stopped; {
		select {
		case <-f.wake:
			stopped = f.waitForBatch(stop)
		case <-retry.C:
			f.requeueFailed()
		case <-stop:
			stopped = true
		}
		if stopped {
			f.requeueFailed()
		}
		for _, messages := range f.takeBatches() {
			calls.Go(func() error { f.sendBatch(ctx, messages); return nil })
		}
	}
	_ = calls.Wait()
}

func (f *inFlight) waitForBatch(stop <-chan struct{}) (stopped bool) {
	f.mu.Lock()
	full := len(f.answers) >= batch
	f.mu.Unlock()
	if full {
		return false
	}
	wait := time.NewTimer(f.limits.batchDelay)
	defer wait.Stop()
	select {
	case <-wait.C:
		return false
	case <-stop:
		return true
	}
}

func (f *inFlight) requeueFailed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers = append(f.answers, f.failed...)
	f.failed = nil
}

func (f *inFlight) takeBatches() (batches [][]*message) {
	f.mu.Lock()
	answers := f.answers
	f.answers = nil
	f.mu.Unlock()
	var deletions, releases []*message
	for _, m := range answers {
		if m.delay == deleteMessage {
			deletions = append(deletions, m)
		} else {
			releases = append(releases, m)
		}
	}
	return slices.AppendSeq(slices.Collect(slices.Chunk(deletions, batch)), slices.Chunk(releases, batch))
}

// sendBatch retries a failed message later, unless the queue no longer knows it or may have delivered it
// again.
func (f *inFlight) sendBatch(ctx context.Context, messages []*message) {
	var failed failures
	if messages[0].delay == deleteMessage {
		failed, _ = f.delete(ctx, messages)
	} else {
		failed, _ = f.setVisibility(ctx, messages, func(m *message) time.Duration { return min(m.delay, f.remainingHold(m)) })
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range messages {
		err := failed[m]
		if err != nil && !err.gone && time.Now().Before(m.hiddenUntil) {
			f.failed = append(f.failed, m)
			continue
		}
		if err != nil {
			f.warnings.unsent.Log(ctx, "could not delete or release a message: if the queue redelivers it, that does no harm", "queue", f.cfg.URL, "message_id", m.id, "error", err)
		}
		f.slots.Release(1)
	}
}

func (f *inFlight) remainingHold(m *message) time.Duration {
	return max(time.Until(m.receivedAt.Add(f.limits.maxHold)), 0)
}

func (f *inFlight) renew(ctx context.Context) {
	tick := time.NewTicker(f.limits.visibility / 6)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for messages := range slices.Chunk(f.dueForRenewal(ctx), batch) {
			f.renewBatch(ctx, messages)
		}
	}
}

func (f *inFlight) dueForRenewal(ctx context.Context) (due []*message) {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	for m := range f.unanswered {
		switch {
		case m.lost || m.hiddenUntil.Sub(now) > f.limits.visibility*2/3:
		case f.remainingHold(m) < time.Second:
			m.lost = true
			f.warnings.lost.Log(ctx, "a message was held up to the queue's time limit and will be redelivered", "queue", f.cfg.URL,
				"message_id", m.id, "held", f.limits.maxHold)
		default:
			due = append(due, m)
		}
	}
	return due
}

func (f *inFlight) renewBatch(ctx context.Context, messages []*message) {
	now := time.Now()
	wanted := func(m *message) time.Duration { return min(f.limits.visibility, f.remainingHold(m)) }
	failed, _ := f.setVisibility(ctx, messages, wanted)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range messages {
		switch err := failed[m]; {
		case err == nil:
			m.hiddenUntil = now.Add(wanted(m))
		case err.gone:
			m.lost = true
			f.warnings.lost.Log(ctx, "a message is no longer held: it was deleted, or will be redelivered", "queue", f.cfg.URL, "message_id", m.id, "error", err)
		case ctx.Err() == nil:
			f.warnings.outage.Log(ctx, "could not extend the visibility timeout of a message; retrying", "queue", f.cfg.URL, "message_id", m.id, "error", err)
		}
	}
}
