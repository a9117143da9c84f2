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

// Sweeper looks at files whose time has come. Several processes may do so over one
// index.
type Sweeper struct {
	Service *Service
	// Concurrency is how many files are looked at at the same time, in random order, so that
	// processes that sweep at once share them out. 1 and less: one after the other, the
	// earliest first.
	Concurrency int

	mu      sync.Mutex
	round   int
	failing map[string]failure // by file
	last    error
}

// failure is a file that could not be looked at.
type failure struct {
	round int // that met it last
	wait  time.Duration
	until time.Time
}

const (
	sweepPage = 1000
	// initialBackoff and longestWait are how long a file is left alone that could not be
	// looked at: each time twice as long.
	initialBackoff, maxBackoff = 10 * time.Second, 5 * time.Minute
	// maxFailing is of how many files that is remembered. Others are tried each round.
	maxFailing = 10_000
)

// Round looks at each file whose time has come, and returns at how many. One that
// cannot be looked at keeps no other from it, and is left alone for a while. The error
// has one of them. Rounds of a Sweeper follow one another.
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

// reconcilePage looks at the files of a page, but for those that are left alone.
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

// reconcileRecord looks at a file, unless it was moved since the page was read: then another
// process was faster.
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

// backingOff reports that a file is left alone still.
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

// recordFailure leaves a file alone for a while.
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
