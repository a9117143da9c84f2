package audit

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// spanQueue distributes the keys below a prefix among goroutines. An idle goroutine takes half of
// the rest of an active span.
type spanQueue struct {
	prefix string

	mu      sync.Mutex
	changed *sync.Cond
	waiting []*Span
	active  []*Span
	splits  int

	pages       atomic.Int64 // approximate
	emptySplits atomic.Int64 // splits without a key so far
}

// An empty split costs a request. The queue permits freeSplits of them, and one more per
// pagesPerSplit pages.
const (
	freeSplits    = 24
	pagesPerSplit = 10
)

func newSpanQueue(prefix string, spans ...*Span) *spanQueue {
	h := &spanQueue{prefix: prefix, waiting: spans}
	h.changed = sync.NewCond(&h.mu)
	for _, s := range spans {
		s.queue = h
	}
	return h
}

func (h *spanQueue) next(ctx context.Context) *Span {
	h.mu.Lock()
	defer h.mu.Unlock()
	for ctx.Err() == nil {
		if n := len(h.waiting); n > 0 {
			s := h.waiting[n-1]
			h.waiting = h.waiting[:n-1]
			h.active = append(h.active, s)
			return s
		}
		if len(h.active) == 0 {
			return nil
		}
		if rest := h.split(); rest != nil {
			return rest
		}
		h.changed.Wait()
	}
	return nil
}

func (h *spanQueue) split() *Span {
	if h.emptySplits.Load() >= freeSplits+h.pages.Load()/pagesPerSplit {
		return nil
	}
	for _, s := range h.active {
		if rest := s.split(h.prefix); rest != nil {
			h.splits++
			h.emptySplits.Add(1)
			h.active = append(h.active, rest)
			return rest
		}
	}
	return nil
}

func (h *spanQueue) pageDone() {
	h.pages.Add(1)
	h.changed.Signal()
}

func (h *spanQueue) finish(s *Span) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.finished()
	h.active = slices.DeleteFunc(h.active, func(o *Span) bool { return o == s })
	h.changed.Broadcast()
}

func (h *spanQueue) wakeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changed.Broadcast()
}

func (h *spanQueue) commit(s *Span) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.commit()
}

func (h *spanQueue) newSplits() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n, h.splits = h.splits, 0
	return n
}

func (h *spanQueue) remaining() (spans []bounds) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range slices.Concat(h.active, h.waiting) {
		spans = append(spans, s.bounds())
	}
	return spans
}
