package awslambda_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/awslambda"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/membucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/virtualtime"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/source/lambdasource"
	"github.com/pawlhq/pawl/source/sourcetest"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/memory"
)

// shared claims to be shared by several machines.
type shared struct{ store.Store }

func (s shared) Traits() store.Traits {
	t := s.Store.Traits()
	t.Volatile, t.Local = false, false
	return t
}

type function struct {
	*testing.T
	awslambda.Handler
	log bytes.Buffer
}

func newFunction(t *testing.T, handle pawl.HandlerFunc) *function {
	f := &function{T: t}
	objects := membucket.New(time.Now, []string{"photos"})
	for _, key := range []string{"a", "b"} {
		o := bucket.Object{Body: strings.NewReader("x"), Size: 1}
		if _, err := objects.Put(t.Context(), event.Object{Bucket: "photos", Key: key}, o, bucket.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	f.Scheduled = true
	f.Config = pawl.Config{
		Ledger: shared{memory.New()}, Objects: objects, Logger: slog.New(slog.NewTextHandler(&f.log, nil)),
		Pipelines: []pawl.Pipeline{{Name: "tell", Match: pawl.Match{Bucket: "photos"}, Handler: handle}},
	}
	return f
}

func (f *function) invoke(payload string) error {
	f.Helper()
	ctx, stop := context.WithTimeout(f.Context(), time.Minute)
	defer stop()
	_, err := f.Invoke(ctx, []byte(payload))
	return err
}

func TestMissingSweepsAreNoticed(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		f := newFunction(t, func(context.Context, *pawl.Task) error { return errors.New("busy") })
		acknowledged := func(key string) bool { return f.invoke(sourcetest.Payload(key)) == nil }
		if acknowledged("a") || !strings.Contains(f.log.String(), "no sweep has run for five minutes") {
			t.Errorf("acknowledged although no sweep ever ran, or not logged:\n%s", &f.log)
		}
		if err := f.invoke(`{"pawl":"sweep"}`); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // the handler reads the time of the last sweep again
		if !acknowledged("b") {
			t.Error("not acknowledged although a sweep has run")
		}
		time.Sleep(6 * time.Minute)
		if acknowledged("a") {
			t.Error("acknowledged although no sweep has run for seven minutes")
		}
	})
}

func TestLongSweepIsRecorded(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		begun := make(chan struct{})
		slow := true
		f := newFunction(t, func(ctx context.Context, _ *pawl.Task) error {
			if !slow {
				close(begun)
				<-ctx.Done()
			}
			return errors.New("busy")
		})
		if err := f.invoke(sourcetest.Payload("a")); err == nil {
			t.Fatal("acknowledged without a sweep")
		}
		slow = false
		time.Sleep(time.Minute)
		ctx, stop := context.WithTimeout(t.Context(), 15*time.Minute)
		defer stop()
		var sweeping sync.WaitGroup
		sweeping.Go(func() {
			if _, err := f.Invoke(ctx, []byte(`{"pawl":"sweep"}`)); err != nil {
				t.Error(err)
			}
		})
		<-begun
		time.Sleep(10 * time.Minute)
		slow = true
		if err := f.invoke(sourcetest.Payload("b")); err != nil {
			t.Errorf("not acknowledged during a sweep: %v", err)
		}
		sweeping.Wait()
	})
}

type noDue struct{ store.Store }

func (noDue) Due(context.Context, store.DueRange) ([]store.Record, error) {
	return nil, errors.New("access denied")
}

func TestSweepWithoutAnswerIsNotRecorded(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		f := newFunction(t, func(context.Context, *pawl.Task) error { return errors.New("busy") })
		f.Config.Ledger = noDue{f.Config.Ledger}
		if err := f.invoke(`{"pawl":"sweep"}`); err == nil || !strings.Contains(err.Error(), "pipeline tell") {
			t.Errorf("the sweep returned %v", err)
		}
		if err := f.invoke(sourcetest.Payload("a")); err == nil {
			t.Error("acknowledged although no sweep has read the ledger")
		}
	})
}

func TestConcurrentInvocations(t *testing.T) {
	var mu sync.Mutex
	done := map[string]int{}
	f := newFunction(t, func(_ context.Context, task *pawl.Task) error {
		mu.Lock()
		defer mu.Unlock()
		done[task.Object.Key]++
		return nil
	})
	var all sync.WaitGroup
	for range 8 {
		for _, key := range []string{"a", "b"} {
			all.Go(func() {
				for range 20 {
					if err := f.invoke(sourcetest.Payload(key)); err != nil && !strings.Contains(err.Error(), "another worker is processing the object") {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	if got := fmt.Sprint(done); got != "map[a:1 b:1]" {
		t.Errorf("handled %s", got)
	}
}

func TestRefusals(t *testing.T) {
	f := newFunction(t, nil)
	if _, err := f.Invoke(t.Context(), []byte(sourcetest.Payload("a"))); err == nil || !strings.Contains(err.Error(), "no deadline") {
		t.Error(err)
	}
	f = newFunction(t, func(context.Context, *pawl.Task) error { return nil })
	for payload, want := range map[string]string{
		`{"pawl":"dance"}`: `want sweep or audit`, `{"pawl":""}`: `want sweep or audit`, `{"pawl":7}`: lambdasource.ErrPayload.Error(), `x`: lambdasource.ErrPayload.Error(),
	} {
		if err := f.invoke(payload); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", payload, err)
		}
	}
	f = newFunction(t, func(context.Context, *pawl.Task) error { return nil })
	f.Config.Ledger = memory.New()
	if err := f.invoke(sourcetest.Payload("a")); !errors.Is(err, pawl.ErrConfig) || !strings.Contains(err.Error(), "its own ledger") {
		t.Error(err)
	}
	f = newFunction(t, func(context.Context, *pawl.Task) error { return nil })
	f.Config.Ledger = nil
	if err := f.invoke(sourcetest.Payload("a")); !errors.Is(err, pawl.ErrConfig) {
		t.Error(err)
	}
}

// Each invocation creates a new Pawl, which must remember the outage.
func TestOutageIsRemembered(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		attempts := 0
		f := newFunction(t, func(context.Context, *pawl.Task) error {
			attempts++
			return pawl.OutageIfShared(errors.New("connection refused"), "refused", 2)
		})
		rows := ledger.NewRows(f.Config.Ledger)
		for i := range 6 * 60 {
			if err := f.invoke(`{"pawl":"sweep"}`); err != nil {
				t.Fatal(err)
			}
			if i < 2 {
				if err := f.invoke(sourcetest.Payload(string(rune('a' + i)))); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Minute)
		}
		for row, err := range rows.Scan(t.Context(), ledger.Range{}) {
			if err != nil {
				t.Fatal(err)
			}
			if row.Dead || row.Attempts > 2 {
				t.Errorf("%s: dead %t, %d attempts were counted", row.RowKey, row.Dead, row.Attempts)
			}
		}
		if attempts < 300 {
			t.Errorf("%d attempts in six hours: the receiver was not probed", attempts)
		}
	})
}
