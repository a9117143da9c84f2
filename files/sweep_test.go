package files_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/internal/virtualtime"
	"github.com/pawlhq/pawl/store/memory"
)

// unreliableObjects is an empty bucket whose clock is far ahead. It fails for some keys.
type unreliableObjects struct {
	files.Objects
	fails func(key string) bool

	mu    sync.Mutex
	stats map[string]int
}

func (o *unreliableObjects) Stat(ctx context.Context, key string) (files.ObjectInfo, error) {
	time.Sleep(20 * time.Millisecond)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stats[key]++
	if o.fails != nil && o.fails(key) {
		return files.ObjectInfo{}, errors.New("AccessDenied")
	}
	return files.ObjectInfo{Date: time.Now().Add(10_000 * time.Hour)}, ctx.Err()
}

func (o *unreliableObjects) Sign(context.Context, *files.File, time.Time) (files.SignedRequest, error) {
	return files.SignedRequest{}, nil
}

func (o *unreliableObjects) Uploads(context.Context, string) iter.Seq2[files.OpenUpload, error] {
	return func(func(files.OpenUpload, error) bool) {}
}

func (o *unreliableObjects) Remove(context.Context, string) error { return nil }

// The n uploads of pending are due to expire.
func pending(t *testing.T, n int) (*files.Service, *unreliableObjects) {
	o := &unreliableObjects{stats: map[string]int{}}
	made := 0
	s := &files.Service{Index: files.NewIndex(memory.New()), Objects: o, Times: files.DefaultTimes()}
	s.NewID = func() string { made++; return fmt.Sprintf("%08d-0000-7000-8000-000000000000", made) }
	for range n {
		if _, _, err := s.Upload(t.Context(), "e", "", files.Promise{}); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(2 * time.Hour)
	return s, o
}

// The failing files fill more than one page of a sweep.
func TestSweepContinuesAfterFailures(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		s, o := pending(t, 1101)
		o.fails = func(key string) bool { return key <= "00001100~" }
		w := &files.Sweeper{Service: s, Concurrency: 16}
		n, err := w.Round(t.Context())
		if n != 1 || err == nil || !strings.Contains(err.Error(), "1100 files could not be reconciled") {
			t.Errorf("%d reconciled, %v: want 1, and that 1100 failed", n, err)
		}
		if f, err := s.Get(t.Context(), "00001101-0000-7000-8000-000000000000"); err != nil || f.State != files.Expired {
			t.Error(f.State, err)
		}
		for range 360 { // one hour
			time.Sleep(10 * time.Second)
			_, _ = w.Round(t.Context())
		}
		for key, n := range o.stats {
			if o.fails(key) && (n < 12 || n > 18) {
				t.Fatalf("%s was checked %d times within an hour", key, n)
			}
		}
		o.fails = nil
		time.Sleep(time.Hour)
		if n, err := w.Round(t.Context()); n != 1100 || err != nil {
			t.Errorf("%d reconciled, %v: want 1100", n, err)
		}
	})
}

func TestAuditContinuesAfterFailures(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		s, o := pending(t, 3)
		o.fails = func(key string) bool { return key < "00000002" }
		r, err := s.Audit(t.Context(), func(yield func(files.Listed, error) bool) {
			for i := range 3 {
				if !yield(files.Listed{Key: fmt.Sprintf("%08d-0000-7000-8000-000000000000", i+1)}, nil) {
					return
				}
			}
		}, files.AuditOptions{})
		if r.Failed != 1 || r.Objects != 3 || r.Moved["expired"] != 2 || err == nil || !strings.Contains(err.Error(), "1 files could not be audited; the first: 00000001-") {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func TestConcurrentSweepsShareWork(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		const n = 960
		s, o := pending(t, n)
		began := time.Now()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if _, err := (&files.Sweeper{Service: s, Concurrency: 16}).Round(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		took, requests := time.Since(began), 0
		for _, n := range o.stats {
			requests += n
		}
		if alone := n / 16 * 20 * time.Millisecond; took > alone*6/10 || requests > n*14/10 || len(o.stats) != n {
			t.Errorf("reconciled %d of %d files with %d requests in %s; one process takes %s", len(o.stats), n, requests, took, alone)
		}
	})
}
