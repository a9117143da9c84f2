package audit

import (
	"strings"
	"sync"
	"unicode/utf8"
)

// Span is a range of keys. It can be split while it is walked.
type Span struct {
	after string // keys up to and including this one are repaired
	end   string // inclusive upper bound; empty means no bound

	mu            sync.Mutex
	pos           string // last key compared
	sinceSplit    int
	splitPending  bool // the last split-off span has neither yielded a key nor ended
	splitWasEmpty bool
	step          int        // number of bytes by which the next split advances; 0 halves the range
	narrowing     bool       // the last step was too large
	queue         *spanQueue // nil if the span is walked without a queue
	// parent is the span from which this one was split off. The first key of this span clears it.
	parent *Span
}

// NewSpan returns the span of all keys after the given key.
func NewSpan(after string) *Span { return &Span{after: after, pos: after} }

// Done returns the key up to which all keys are repaired.
func (s *Span) Done() string { return s.after }

func (s *Span) advance(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != "" && key > s.end {
		return false
	}
	s.pos = key
	s.sinceSplit++
	if s.parent != nil {
		s.parent.splitResult(true)
		s.parent = nil
	}
	if s.queue != nil && s.sinceSplit%chunk == 0 {
		s.queue.pageDone()
	}
	return true
}

// bounds are stored in checkpoints.
type bounds struct {
	After []byte `json:"after,omitzero"`
	End   []byte `json:"end,omitzero"`
}

func (s *Span) bounds() bounds {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bounds{[]byte(s.after), []byte(s.end)}
}

func (s *Span) commit() { s.after = s.pos }

func (s *Span) splitResult(fruitful bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.splitPending, s.splitWasEmpty = false, !fruitful
	switch {
	case fruitful:
		s.step, s.narrowing = 0, false
		s.queue.emptySplits.Add(-1)
	case s.narrowing && s.step > 0:
		s.step /= 2
	default:
		s.narrowing = false
		s.step = min(max(1, 2*s.step), 1024)
	}
}

func (s *Span) finished() {
	if s.parent != nil {
		s.parent.splitResult(false)
	}
}

// split returns a new span with the second half of the remaining keys. It returns nil if the span
// has not run long enough or cannot be split.
//
// Because keys often share long prefixes, the step grows after each empty split.
func (s *Span) split(prefix string) *Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.splitPending || !s.splitWasEmpty && s.sinceSplit < chunk {
		return nil // too early: the span may be about to end
	}
	mid := keyBetween(s.pos, s.end, len(prefix), s.step)
	s.sinceSplit = 0
	if mid == "" {
		s.splitWasEmpty, s.step, s.narrowing = false, 0, false
		return nil
	}
	rest := NewSpan(mid)
	rest.end, rest.queue, rest.parent = s.end, s.queue, s
	rest.step, rest.narrowing = s.step/2, s.step > 1
	s.end, s.splitPending = mid, true
	return rest
}

// keyBetween returns a key between pos and end, or "" if there is none. An empty end means no
// bound. A positive leap assumes that the next keys share leap more bytes with pos, and returns a
// key just after them. Otherwise, or if that key is not between the two, keyBetween halves the
// range of the first character that differs.
func keyBetween(pos, end string, shared, leap int) string {
	for end != "" && shared < min(len(pos), len(end)) && pos[shared] == end[shared] {
		shared++
	}
	shared = wholeRunes(pos, min(shared, len(pos)))
	if leap > 0 {
		mid := pos[:wholeRunes(pos, min(shared+leap, len(pos)))] + "~"
		if mid > pos && (end == "" || mid < end) {
			return mid
		}
	}
	mid := midpointKey(pos, end, shared)
	if mid <= pos || end != "" && mid >= end || !utf8.ValidString(mid) {
		return ""
	}
	return mid
}

// alphabetWindow is the range that midpointKey halves after a character beyond ASCII without
// upper bound.
const alphabetWindow = 1024

func midpointKey(pos, end string, shared int) string {
	for {
		low, size := rune(' '-1), 0
		if shared < len(pos) {
			low, size = utf8.DecodeRuneInString(pos[shared:])
		}
		high := rune('~')
		switch {
		case end != "" && shared < len(end):
			high, _ = utf8.DecodeRuneInString(end[shared:])
		case low >= high:
			high = min(low+alphabetWindow, utf8.MaxRune)
		}
		mid := low + (high-low)/2
		if mid >= 0xD800 && mid < 0xE000 { // surrogates are not characters
			mid = 0xE000
		}
		switch {
		case mid > low && mid < high:
			return pos[:shared] + string(mid)
		case size == 0:
			return "" // end is pos plus the smallest character
		}
		shared += size
		end = "" // keys with pos as prefix are below end
	}
}

// wholeRunes returns the largest length up to n that does not split a character of s.
func wholeRunes(s string, n int) int {
	for n > 0 && n < len(s) && !utf8.RuneStart(s[n]) {
		n--
	}
	return n
}

func intersectPrefixes(a, b string) (string, bool) {
	switch {
	case strings.HasPrefix(a, b):
		return a, true
	case strings.HasPrefix(b, a):
		return b, true
	}
	return "", false
}
