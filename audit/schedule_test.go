package audit_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/audit"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/virtualtime"
	"github.com/pawlhq/pawl/ledger"
)

type notices struct {
	mu  sync.Mutex
	all []engine.Notice
}

func (f *notices) Observe(r engine.Notice) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, r)
}

func (f *notices) count(what engine.Kind) (n int, last engine.Notice) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.all {
		if r.Kind == what {
			n, last = n+1, r
		}
	}
	return n, last
}

// Three workers share one schedule for three days.
func TestSchedule(t *testing.T) {
	for _, registered := range []bool{true, false} {
		virtualtime.Test(t, func(t *testing.T) {
			l := newLosses(t, seed(t), 300)
			var store ledger.Store = l.ledger
			workers := 3
			if !registered {
				store, workers = struct{ ledger.Store }{l.ledger}, 1 // only one worker can use such a ledger
			}
			ctx, stop := context.WithCancel(t.Context())
			observed := make([]notices, workers)
			after := 0
			var wg sync.WaitGroup
			for i := range workers {
				a, err := audit.New(audit.Config{
					Ledger: store, Objects: l.objects, Pipelines: []audit.Pipeline{l.pipeline}, TTL: time.Second,
					Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Observer: &observed[i],
				})
				if err != nil {
					t.Fatal(err)
				}
				wg.Go(func() {
					a.RunSchedule(ctx, audit.Schedule{
						Every: 24 * time.Hour, Options: audit.Options{SettleWindow: time.Hour},
						After: func(context.Context) error {
							after++ // under the lease
							return nil
						},
					})
				})
			}
			time.Sleep(3*24*time.Hour - 10*time.Minute)
			stop()
			wg.Wait()
			audits, losses, repaired := 0, 0, 0
			for i := range observed {
				n, _ := observed[i].count(engine.Audited)
				audits += n
				n, _ = observed[i].count(engine.LossFound)
				losses += n
				n, _ = observed[i].count(engine.LossRepaired)
				repaired += n
				if n, last := observed[i].count(engine.LastAudit); n < 3*24*30 || last.Took > 24*time.Hour || last.Took < 23*time.Hour {
					t.Errorf("worker %d reported the age of the last audit %d times, last %v", i, n, last.Took)
				}
			}
			if audits != 3 || after != 3 || losses != len(l.lost) || repaired != losses {
				t.Errorf("%d audits in three days, %d calls of After, %d losses found and %d repaired, of %d", audits, after, losses, repaired, len(l.lost))
			}
			l.check(t)
		})
	}
}

// The last attempt lists twice, the second time for removals.
func TestScheduleRetriesAfterFailure(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		l := newLosses(t, seed(t), 300)
		var observed notices
		a, err := audit.New(audit.Config{
			Ledger: l.ledger, Objects: l.objects, Pipelines: []audit.Pipeline{l.pipeline}, TTL: time.Second,
			Logger: slog.New(slog.DiscardHandler), Observer: &observed,
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		times := 0
		var wg sync.WaitGroup
		wg.Go(func() {
			a.RunSchedule(ctx, audit.Schedule{
				Every: 24 * time.Hour, Options: audit.Options{SettleWindow: time.Hour, Listing: failingStore{l.objects, &times}},
			})
		})
		time.Sleep(time.Hour)
		if reports, err := a.Reports(ctx); err != nil || len(reports) != 1 || times != 5 {
			t.Errorf("%d reports after %d tries, %v", len(reports), times, err)
		}
		stop()
		wg.Wait()
		l.check(t)
		failed, last := observed.count(engine.AuditFailed)
		runs, end := observed.count(engine.AuditRunning)
		if _, age := observed.count(engine.LastAudit); failed != 3 || !strings.Contains(last.Detail, errDown.Error()) || runs != 8 || end.N != 0 || age.N != 0 {
			t.Errorf("%d failed audits (%s), %d beginnings and ends, the last audit is %+v", failed, last.Detail, runs, age)
		}
	})
}

var errDown = errors.New("the store is down")

type failingStore struct {
	bucket.Store
	times *int
}

func (f failingStore) List(ctx context.Context, name, prefix, startAfter string) iter.Seq2[bucket.Info, error] {
	if *f.times++; *f.times < 4 {
		return func(yield func(bucket.Info, error) bool) { yield(bucket.Info{}, errDown) }
	}
	return f.Store.List(ctx, name, prefix, startAfter)
}
