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
	tries int    // in a row that brought the other nothing
	// long, when set, is called each time as many keys as a page holds were compared.
	long func()
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
		s.source.shared()
		s.source = nil
	}
	if s.long != nil && s.since%chunk == 0 {
		s.long()
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

// shared hears that what was split off is not empty.
func (s *Span) shared() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tries = 0
}

// patience is after how many keys a span is long enough to be split. Each time that
// showed nothing behind, it takes half a page more: so requests in vain are few.
func (s *Span) patience() int { return chunk + s.tries*chunk/2 }

// split gives away the keys beyond one in the middle of what may be left. Nil: it has
// not run for long enough, or there is nothing to give.
func (s *Span) split(prefix string) *Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since < s.patience() {
		return nil
	}
	s.since = 0
	mid := between(s.pos, s.end, len(prefix), leap(s.tries))
	s.tries++
	if mid == "" {
		return nil
	}
	rest := NewSpan(mid)
	rest.end, rest.long, rest.source = s.end, s.long, s
	s.end = mid
	return rest
}

// leap is how far behind what two bounds share the next is looked for: keys often
// have long beginnings in common.
func leap(tries int) int { return 1 << min(tries, 20) >> 1 }

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
			high = utf8.MaxRune
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
