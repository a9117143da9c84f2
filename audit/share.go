package audit

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// share shares out the keys below a prefix among workers. One that runs out of work
// takes half of the range that has run for longest.
type share struct {
	prefix string

	mu      sync.Mutex
	changed *sync.Cond
	waiting []*Span // for a worker
	active  []*Span
	splits  int // since they were counted last

	pages atomic.Int64 // listed so far, about
	vain  atomic.Int64 // splits that have brought nothing, or not yet
}

// spare and spareShare bound the requests in vain: so many, and such a share of the
// pages.
const (
	spare      = 24
	spareShare = 10
)

func newShare(prefix string, spans ...*Span) *share {
	h := &share{prefix: prefix, waiting: spans}
	h.changed = sync.NewCond(&h.mu)
	for _, s := range spans {
		s.share = h
	}
	return h
}

// take returns a span to walk, or nil when nothing is left, or ctx has ended.
func (h *share) take(ctx context.Context) *Span {
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
func (h *share) split() *Span {
	if h.vain.Load() >= spare+h.pages.Load()/spareShare {
		return nil
	}
	for _, s := range h.active {
		if rest := s.split(h.prefix); rest != nil {
			h.splits++
			h.vain.Add(1)
			h.active = append(h.active, rest)
			return rest
		}
	}
	return nil
}

// page hears that a span has gone on by as many keys as a page holds.
func (h *share) page() {
	h.pages.Add(1)
	h.changed.Signal()
}

// finish drops a span that is done with.
func (h *share) finish(s *Span) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.ended()
	h.active = slices.DeleteFunc(h.active, func(o *Span) bool { return o == s })
	h.changed.Broadcast()
}

func (h *share) wake() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changed.Broadcast()
}

// commit notes that all that was compared of a span is repaired.
func (h *share) commit(s *Span) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.commit()
}

// newSplits returns how many ranges there are more than when it was called last.
func (h *share) newSplits() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n, h.splits = h.splits, 0
	return n
}

// left is what is not done.
func (h *share) left() (spans []bounds) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range slices.Concat(h.active, h.waiting) {
		spans = append(spans, s.bounds())
	}
	return spans
}
