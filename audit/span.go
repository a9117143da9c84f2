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

	mu    sync.Mutex
	pos   string // the last key compared
	since int    // keys compared since somebody tried to split it
	tried bool   // it was split, and nobody knows yet whether that brought something
	vain  bool   // the last split has brought nothing
	leap  int    // of the next split
	near  bool   // what is looked for is nearer than the last leap
	share *share // nil: it is not shared
	// source is what it was split off, until its first key.
	source *Span
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
	s.since++
	if s.source != nil {
		s.source.shared(true)
		s.source = nil
	}
	if s.share != nil && s.since%chunk == 0 {
		s.share.page()
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

// shared hears whether what was split off has a key.
func (s *Span) shared(fruitful bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried, s.vain = false, !fruitful
	switch {
	case fruitful:
		s.leap, s.near = 0, false
		s.share.vain.Add(-1)
	case s.near && s.leap > 0:
		s.leap /= 2
	default:
		s.near = false
		s.leap = min(max(1, 2*s.leap), 1024)
	}
}

// ended hears that the span is walked.
func (s *Span) ended() {
	if s.source != nil {
		s.source.shared(false)
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
	if s.tried || !s.vain && s.since < chunk {
		return nil // it may be at its end
	}
	mid := between(s.pos, s.end, len(prefix), s.leap)
	s.since = 0
	if mid == "" {
		s.vain, s.leap, s.near = false, 0, false
		return nil
	}
	rest := NewSpan(mid)
	rest.end, rest.share, rest.source = s.end, s.share, s
	rest.leap, rest.near = s.leap/2, s.leap > 1
	s.end, s.tried = mid, true
	return rest
}

// between returns a key between two, the last of which may be missing, in the
// alphabet that keys are mostly written in. Without a leap it halves the range of the
// first character in which they differ; with one it assumes that all keys share so
// many bytes more with the first. Empty: there is none.
func between(pos, end string, shared, leap int) string {
	for end != "" && shared < min(len(pos), len(end)) && pos[shared] == end[shared] {
		shared++
	}
	shared = whole(pos, min(shared, len(pos)))
	if leap > 0 {
		mid := pos[:whole(pos, min(shared+leap, len(pos)))] + "~"
		if mid > pos && (end == "" || mid < end) {
			return mid
		}
	}
	mid := halfway(pos, end, shared)
	if mid <= pos || end != "" && mid >= end || !utf8.ValidString(mid) {
		return ""
	}
	return mid
}

// block is within how many characters of another alphabet the next are looked for.
const block = 1024

// halfway halves the range of one character.
func halfway(pos, end string, shared int) string {
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
			high = min(low+block, utf8.MaxRune)
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

// whole returns the largest number, up to n, of bytes that are whole characters.
func whole(s string, n int) int {
	for n > 0 && n < len(s) && !utf8.RuneStart(s[n]) {
		n--
	}
	return n
}

// meet returns the prefix of what has both; false: nothing has.
func meet(a, b string) (string, bool) {
	switch {
	case strings.HasPrefix(a, b):
		return a, true
	case strings.HasPrefix(b, a):
		return b, true
	}
	return "", false
}
