package audit

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/virtualtime"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/store/memory"
)

func TestKeyBetween(t *testing.T) {
	key := rapid.OneOf(rapid.StringN(0, 12, 40), rapid.StringMatching(`[a-c/~ ]{0,8}`), rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 6), func(b []byte) string { return string(b) }))
	rapid.Check(t, func(t *rapid.T) {
		pos, end := key.Draw(t, "pos"), key.Draw(t, "end")
		shared := rapid.IntRange(0, len(pos)).Draw(t, "shared")
		if end != "" && (end <= pos || end[:min(shared, len(end))] != pos[:min(shared, len(end))]) {
			return
		}
		mid := keyBetween(pos, end, min(shared, len(pos)), rapid.IntRange(0, 20).Draw(t, "leap"))
		if mid != "" && (mid <= pos || end != "" && mid >= end) {
			t.Fatalf("%q is not between %q and %q", mid, pos, end)
		}
	})
}

var shapes = map[string]func(i, n int) string{
	"numbers": func(i, _ int) string { return fmt.Sprintf("in/%09d", i) },
	"dates": func(i, n int) string {
		return fmt.Sprintf("logs/2026/%02d/%02d/%02d/%06d.gz", 1+i*12/n, 1+i*12*28/n%28, i%24, i)
	},
	"hashes":   func(i, _ int) string { return fmt.Sprintf("%016x", uint64(i+1)*0x9E3779B97F4A7C15) },
	"one deep": func(i, _ int) string { return strings.Repeat("a/", 200) + fmt.Sprintf("%07d", i) },
	"umlauts":  func(i, n int) string { return fmt.Sprintf("bücher/%c/%06d", rune(0x4e00+i*500/n), i) },
	"mixed":    func(i, _ int) string { return fmt.Sprintf("%s/%06d", []string{"A", "b", "tenant-17/x", "z"}[i%4], i) },
}

// Each key must appear once, in parallel ranges, with few more requests than pages.
func TestSplits(t *testing.T) {
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			virtualtime.Test(t, func(t *testing.T) {
				const n, workers = 100_000, 8
				l := newLister(shape, n)
				began := time.Now()
				l.walk(t, workers)
				row := int(time.Since(began) / time.Second)
				t.Logf("%d requests for %d pages, %d in a row", l.requests, n/chunk, row)
				if l.requests > n/chunk+100 {
					t.Errorf("%d requests for %d pages", l.requests, n/chunk)
				}
				if row > n/chunk*2/3 {
					t.Errorf("%d of %d requests were sequential, of %d workers", row, n/chunk, workers)
				}
			})
		})
	}
}

// lister simulates listings in which a request takes a second and returns one page.
type lister struct {
	keys     []string
	mu       sync.Mutex
	requests int
}

func newLister(shape func(i, n int) string, n int) *lister {
	l := &lister{}
	for i := range n {
		l.keys = append(l.keys, shape(i, n))
	}
	slices.Sort(l.keys)
	return l
}

func (l *lister) List(_ context.Context, _, _, after string) iter.Seq2[bucket.Info, error] {
	return func(yield func(bucket.Info, error) bool) {
		for {
			l.mu.Lock()
			l.requests++
			l.mu.Unlock()
			i, found := slices.BinarySearch(l.keys, after)
			if found {
				i++
			}
			page := l.keys[i:min(i+chunk, len(l.keys))]
			time.Sleep(time.Second)
			for _, key := range page {
				if !yield(bucket.Info{Key: key, ETag: "e", ModTime: time.Unix(0, 0)}, nil) {
					return
				}
			}
			if len(page) < chunk {
				return
			}
			after = page[len(page)-1]
		}
	}
}

func (l *lister) walk(t *testing.T, workers int) {
	t.Helper()
	h := newSpanQueue("", NewSpan(""))
	got := make([][]string, workers)
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			for s := h.next(t.Context()); s != nil; s = h.next(t.Context()) {
				p := &Pass{
					Pipeline: &Pipeline{Match: func(o event.Object) bool { got[i] = append(got[i], o.Key); return false }},
					Listing:  l, Ledger: ledger.New(ledger.NewRows(memory.New())), Now: time.Now,
				}
				if err := p.Walk(t.Context(), "", s, func(*Counts) error { return nil }); err != nil {
					t.Error(err)
				}
				h.finish(s)
			}
		})
	}
	wg.Wait()
	all := slices.Sorted(slices.Values(slices.Concat(got...)))
	if !slices.Equal(all, l.keys) {
		t.Errorf("%d keys, want %d, each once", len(all), len(l.keys))
	}
}
