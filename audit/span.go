package audit

import (
	"strings"
	"sync"
	"unicode/utf8"
)

// Span is a range of keys. It can be split while it is walked.
type Span struct {
	after string // all up to here is done, and repaired
	end   string // the last key that belongs to it, be there one or not; empty: none

	mu            sync.Mutex
	pos           string     // the last key compared
	sinceSplit    int        // keys compared since somebody tried to split it
	splitPending  bool       // it was split, and nobody knows yet whether that brought something
	splitWasEmpty bool       // the last split has brought nothing
	step          int        // of the next split
	narrowing     bool       // what is looked for is nearer than the last leap
	queue         *spanQueue // nil: it is not shared
	// parent is what it was split off, until its first key.
	parent *Span
}

// NewSpan returns the span of all keys after one.
func NewSpan(after string) *Span { return &Span{after: after, pos: after} }

// Done is up to where all is done.
func (s *Span) Done() string { return s.after }

// advance reports that a key belongs to the span, and will be done.
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

// bounds are what is left of a span: the keys after one, up to another.
type bounds struct {
	After []byte `json:"after,omitzero"`
	End   []byte `json:"end,omitzero"`
}

func (s *Span) bounds() bounds {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bounds{[]byte(s.after), []byte(s.end)}
}

// commit notes that all that was compared is repaired.
func (s *Span) commit() { s.after = s.pos }

// splitResult hears whether what was split off has a key.
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

// finished hears that the span is walked.
func (s *Span) finished() {
	if s.parent != nil {
		s.parent.splitResult(false)
	}
}

// split gives away the keys beyond one in the middle of what may be left. Nil: it has
// not run for long enough, or there is nothing to give.
//
// Keys often have long beginnings in common: where a split has brought nothing, the
// next one leaps further, until a leap was too long. Then leaps shrink.
func (s *Span) split(prefix string) *Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.splitPending || !s.splitWasEmpty && s.sinceSplit < chunk {
		return nil // it may be at its end
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

// keyBetween returns a key between two, the last of which may be missing, in the
// alphabet that keys are mostly written in. Without a leap it halves the range of the
// first character in which they differ; with one it assumes that all keys share so
// many bytes more with the first. Empty: there is none.
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

// alphabetWindow is within how many characters of another alphabet the next are looked for.
const alphabetWindow = 1024

// midpointKey halves the range of one character.
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
		if mid >= 0xD800 && mid < 0xE000 { // no character
			mid = 0xE000
		}
		switch {
		case mid > low && mid < high:
			return pos[:shared] + string(mid)
		case size == 0:
			return "" // end is pos and the least of characters
		}
		shared += size
		end = "" // what begins like pos is below it
	}
}

// wholeRunes returns the largest number, up to n, of bytes that are whole characters.
func wholeRunes(s string, n int) int {
	for n > 0 && n < len(s) && !utf8.RuneStart(s[n]) {
		n--
	}
	return n
}

// intersectPrefixes returns the prefix of what has both; false: nothing has.
func intersectPrefixes(a, b string) (string, bool) {
	switch {
	case strings.HasPrefix(a, b):
		return a, true
	case strings.HasPrefix(b, a):
		return b, true
	}
	return "", false
}
