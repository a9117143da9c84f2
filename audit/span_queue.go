package audit

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// spanQueue shares out the keys below a prefix among workers. One that runs out of work
// takes half of the range that has run for longest.
type spanQueue struct {
	prefix string

	mu      sync.Mutex
	changed *sync.Cond
	waiting []*Span // for a worker
	active  []*Span
	splits  int // since they were counted last

	pages       atomic.Int64 // listed so far, about
	emptySplits atomic.Int64 // splits that have brought nothing, or not yet
}

// spare and spareShare bound the requests in vain: so many, and such a share of the
// pages.
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

// next returns a span to walk, or nil when nothing is left, or ctx has ended.
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

// split takes half of what is left of an active span, if one is long enough and
// requests are to spare.
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

// pageDone hears that a span has gone on by as many keys as a page holds.
func (h *spanQueue) pageDone() {
	h.pages.Add(1)
	h.changed.Signal()
}

// finish drops a span that is done with.
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

// commit notes that all that was compared of a span is repaired.
func (h *spanQueue) commit(s *Span) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.commit()
}

// newSplits returns how many ranges there are more than when it was called last.
func (h *spanQueue) newSplits() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n, h.splits = h.splits, 0
	return n
}

// remaining is what is not done.
func (h *spanQueue) remaining() (spans []bounds) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range slices.Concat(h.active, h.waiting) {
		spans = append(spans, s.bounds())
	}
	return spans
}
