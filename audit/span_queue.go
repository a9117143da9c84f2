package audit

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// spanQueue distributes the keys below a prefix among goroutines. A goroutine without
// work takes half of the remaining keys of an active span.
type spanQueue struct {
	prefix string

	mu      sync.Mutex
	changed *sync.Cond
	waiting []*Span // spans that no goroutine has started
	active  []*Span
	splits  int // splits since the last call of newSplits

	pages       atomic.Int64 // approximate number of pages listed
	emptySplits atomic.Int64 // splits whose span has yielded no key so far
}

// An empty split costs a request. The queue permits freeSplits empty splits, and one more for
// every pagesPerSplit listed pages.
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

// next returns a span to walk. It returns nil if all spans are finished or ctx ended.
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

// split returns a new span with half of the remaining keys of an active span. It returns nil if
// no active span is long enough, or if there were too many empty splits.
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

// pageDone counts a page of keys and wakes a waiting goroutine, because the span may now
// be long enough to split.
func (h *spanQueue) pageDone() {
	h.pages.Add(1)
	h.changed.Signal()
}

// finish removes a finished span.
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

// commit records that the pass has repaired all compared keys of a span.
func (h *spanQueue) commit(s *Span) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.commit()
}

// newSplits returns the number of splits since its last call.
func (h *spanQueue) newSplits() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n, h.splits = h.splits, 0
	return n
}

// remaining returns the key ranges that are not repaired yet.
func (h *spanQueue) remaining() (spans []bounds) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range slices.Concat(h.active, h.waiting) {
		spans = append(spans, s.bounds())
	}
	return spans
}
