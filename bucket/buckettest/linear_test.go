package buckettest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/membucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/linearizable"
)

var disorderly = map[string]func(bucket.Store) bucket.Store{
	"ignores If-Match on PUT":      putting(ignoreMatch),
	"ignores If-None-Match on PUT": putting(ignoreAbsent),
	"compares, then writes":        putting(compareThenWrite),
	"loses what it wrote":          putting(loseSome),
	"writes what it refused":       putting(writeRefused),
	"ignores If-Match on DELETE":   func(s bucket.Store) bucket.Store { return deleter{s} },
	"shows an old head":            showing(func(_, old bucket.Info) bucket.Info { return old }),
	"mixes two heads": showing(func(now, old bucket.Info) bucket.Info {
		now.Metadata = old.Metadata
		return now
	}),
}

func TestDisorder(t *testing.T) {
	for name, spoil := range disorderly {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			good := membucket.New(time.Now, []string{"b"})
			h := Harness{Store: spoil(good), Bucket: "b", DeleteConditions: true, DeleteAtomic: true}
			first := linearizable.Seed(t)
			var err error
			for n := 0; n < 100*linearHistories && err == nil; n++ { // most stores are caught by the first
				err = playOutput(t.Context(), h, fmt.Sprint("history ", n), first+uint64(n))
			}
			if err == nil || !strings.Contains(err.Error(), "have no valid order") {
				t.Errorf("not caught: %v\n%s", err, linearizable.Repeat(t, first))
			}
		})
	}
}

type putFunc func(ctx context.Context, s bucket.Store, n int, ref event.Object, o bucket.Object, c bucket.Condition) (string, error)

type putter struct {
	bucket.Store
	put putFunc

	mu sync.Mutex
	n  int
}

func putting(f putFunc) func(bucket.Store) bucket.Store {
	return func(s bucket.Store) bucket.Store { return &putter{Store: s, put: f} }
}

func (p *putter) Put(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
	p.mu.Lock()
	p.n++
	n := p.n
	p.mu.Unlock()
	return p.put(ctx, p.Store, n, ref, o, c)
}

func ignoreMatch(ctx context.Context, s bucket.Store, _ int, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
	return s.Put(ctx, ref, o, bucket.Condition{IfAbsent: c.IfAbsent})
}

func ignoreAbsent(ctx context.Context, s bucket.Store, _ int, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
	return s.Put(ctx, ref, o, bucket.Condition{IfMatch: c.IfMatch})
}

func compare(ctx context.Context, s bucket.Store, ref event.Object, c bucket.Condition) error {
	info, err := s.Head(ctx, ref)
	if absent := errors.Is(err, bucket.ErrNotFound); c.IfAbsent && !absent || c.IfMatch != "" && (absent || info.ETag != c.IfMatch) {
		return bucket.ErrPrecondition
	}
	return nil
}

func compareThenWrite(ctx context.Context, s bucket.Store, _ int, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
	if err := compare(ctx, s, ref, c); err != nil {
		return "", err
	}
	for range 100 {
		runtime.Gosched() // let another writer do the same
	}
	return s.Put(ctx, ref, o, bucket.Condition{})
}

func loseSome(ctx context.Context, s bucket.Store, n int, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
	if n%4 > 0 {
		return s.Put(ctx, ref, o, c)
	}
	return "etag", compare(ctx, s, ref, c)
}

func writeRefused(ctx context.Context, s bucket.Store, _ int, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
	data, err := io.ReadAll(o.Body)
	if err != nil {
		return "", err
	}
	o.Body = bytes.NewReader(data)
	etag, err := s.Put(ctx, ref, o, c)
	if errors.Is(err, bucket.ErrPrecondition) {
		o.Body = bytes.NewReader(data)
		_, _ = s.Put(ctx, ref, o, bucket.Condition{})
	}
	return etag, err
}

type deleter struct{ bucket.Store }

func (d deleter) Delete(ctx context.Context, ref event.Object, _ bucket.Condition) error {
	return d.Store.Delete(ctx, ref, bucket.Condition{})
}

// headed replaces the result of every fourth Head with the result of show. The parameter old of
// show is the result from before the last Put.
type headed struct {
	bucket.Store
	show func(now, old bucket.Info) bucket.Info

	mu  sync.Mutex
	n   int
	old bucket.Info
}

func showing(f func(now, old bucket.Info) bucket.Info) func(bucket.Store) bucket.Store {
	return func(s bucket.Store) bucket.Store { return &headed{Store: s, show: f} }
}

func (h *headed) Put(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now, err := h.Store.Head(ctx, ref); err == nil {
		h.old = now
	}
	return h.Store.Put(ctx, ref, o, c)
}

func (h *headed) Head(ctx context.Context, ref event.Object) (bucket.Info, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now, err := h.Store.Head(ctx, ref)
	if h.n++; err != nil || h.old.ETag == "" || h.n%4 > 0 {
		return now, err
	}
	return h.show(now, h.old), nil
}
