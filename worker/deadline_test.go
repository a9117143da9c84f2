package worker

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/membucket"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/virtualtime"
	"github.com/pawlhq/pawl/ledger"
)

type slowHead struct {
	bucket.Store
	wait time.Duration
}

func (s slowHead) Head(ctx context.Context, ref event.Object) (bucket.Info, error) {
	info, err := s.Store.Head(ctx, ref)
	<-time.After(s.wait)
	return info, err
}

// After a pause of the process, a task may run before any timer fires.
func TestLeaseEndsByTheClock(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		l := newLease(t.Context(), time.Now().Add(time.Second))
		l.timer.Stop() // the timer does not fire
		<-time.After(time.Second - 1)
		if err := l.Err(); err != nil {
			t.Fatalf("before its deadline: %v", err)
		}
		<-time.After(1)
		if cause := context.Cause(l); !errors.Is(cause, ErrLeaseLost) {
			t.Errorf("at its deadline: %v", cause)
		}
		l.extend(time.Now().Add(time.Hour))
		if l.Err() == nil {
			t.Error("it came back")
		}
	})
}

func TestLeaseIsExtended(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		l := newLease(t.Context(), time.Now().Add(time.Second))
		l.extend(time.Now().Add(time.Minute))
		<-time.After(time.Minute - 1)
		if err := l.Err(); err != nil {
			t.Errorf("before its deadline: %v", err)
		}
		<-time.After(1)
		<-l.Done()
		if cause := context.Cause(l); !errors.Is(cause, ErrLeaseLost) {
			t.Errorf("after its deadline: %v", cause)
		}
	})
}

// A late answer may be newer than what the next holder has read.
func TestLateReadIsNotProcessed(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		store := membucket.New(time.Now, []string{"in"})
		acted := false
		x := &Attempt{
			Objects: slowHead{store, 2 * time.Second},
			Pipeline: &Pipeline{Name: "p", Match: func(event.Object) bool { return true }, Handler: HandlerFunc(func(context.Context, *Task) error {
				acted = true
				return nil
			})},
			Claim: ledger.Claim{Key: ledger.RowKey{Pipeline: "p", Bucket: "in", Key: "k"}, Fence: 1, Forced: true},
			Now:   time.Now,
		}
		l := newLease(t.Context(), time.Now().Add(time.Second))
		l.timer.Stop()
		fin := x.Run(l)
		if acted || fin.Result != engine.Failed || fin.Ending.Sent {
			t.Errorf("acted %v, %+v", acted, fin)
		}
	})
}
