package files

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/pawlhq/pawl/store"
)

// Sweeper reconciles files whose timer is due. Several processes may sweep one index.
type Sweeper struct {
	Service *Service
	// Concurrency is the maximum number of concurrent reconciliations. Above 1, the order of files is
	// random, so that sweepers share the work. Otherwise it is the order of timers.
	Concurrency int

	mu      sync.Mutex
	round   int
	failing map[string]failure // by file ID
	last    error
}

type failure struct {
	round int // last round in which the file was due
	wait  time.Duration
	until time.Time
}

const (
	sweepPage = 1000
	// The backoff of a failed file doubles with each failure.
	initialBackoff, maxBackoff = 10 * time.Second, 5 * time.Minute
	// maxFailing limits remembered failures. Further failed files are retried every round.
	maxFailing = 10_000
)

// Round reconciles all due files and returns their number. It retries a failed file after a
// backoff; the error describes one failure. Do not call Round concurrently.
func (w *Sweeper) Round(ctx context.Context) (n int, err error) {
	w.round++
	w.last = nil
	before, failed := w.Service.now(), 0
	var after store.Place
	for {
		page, err := w.Service.Index.due(ctx, before, after, sweepPage)
		if err != nil || ctx.Err() != nil {
			return n, err
		}
		good, bad := w.reconcilePage(ctx, page)
		n, failed = n+good, failed+bad
		if len(page) < sweepPage {
			break
		}
		after = store.Place{Due: page[sweepPage-1].Due, Name: page[sweepPage-1].Name}
	}
	for id, f := range w.failing {
		if f.round != w.round {
			delete(w.failing, id)
		}
	}
	if failed > 0 {
		err = fmt.Errorf("files: %d files could not be reconciled, and are retried later; one of them: %w", failed, w.last)
	}
	return n, err
}

func (w *Sweeper) reconcilePage(ctx context.Context, page []store.Record) (good, bad int) {
	next := make(chan *store.Record)
	one := func(f *store.Record) {
		failed, skipped := w.reconcileRecord(ctx, f)
		w.mu.Lock()
		defer w.mu.Unlock()
		switch {
		case failed:
			bad++
		case !skipped:
			good++
		}
	}
	if w.Concurrency <= 1 {
		for i := range page {
			one(&page[i])
		}
		return good, bad
	}
	rand.Shuffle(len(page), func(i, j int) { page[i], page[j] = page[j], page[i] })
	var wg sync.WaitGroup
	for range min(w.Concurrency, len(page)) {
		wg.Go(func() {
			for f := range next {
				one(f)
			}
		})
	}
	for i := range page {
		next <- &page[i]
	}
	close(next)
	wg.Wait()
	return good, bad
}

// reconcileRecord skips a file that has changed since the page was read.
func (w *Sweeper) reconcileRecord(ctx context.Context, f *store.Record) (failed, skipped bool) {
	if w.backingOff(f.Name) {
		return false, true
	}
	now, err := w.Service.Index.Load(ctx, f.Name)
	if err == nil && now.Nonce == f.Nonce {
		_, err = w.Service.Reconcile(ctx, f.Name, false)
	}
	if err == nil || errors.Is(err, ErrNotFound) {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.failing, f.Name)
		return false, false
	}
	w.recordFailure(f.Name, err)
	return true, false
}

func (w *Sweeper) backingOff(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	f, known := w.failing[id]
	if known {
		f.round = w.round
		w.failing[id] = f
	}
	return known && w.Service.now().Before(f.until)
}

func (w *Sweeper) recordFailure(id string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = fmt.Errorf("%s: %w", id, err)
	f, known := w.failing[id]
	if !known && len(w.failing) >= maxFailing {
		return
	}
	if w.failing == nil {
		w.failing = map[string]failure{}
	}
	f.wait = min(max(2*f.wait, initialBackoff), maxBackoff)
	f.round, f.until = w.round, w.Service.now().Add(f.wait)
	w.failing[id] = f
}
