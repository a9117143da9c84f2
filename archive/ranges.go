package archive

import (
	"fmt"
	"strings"
)

// Range contains the numbers greater than Start, up to and including End.
type Range struct {
	Start Number `json:"start"`
	End   Number `json:"end"`
}

// String returns "start-end", which ParseRange parses.
func (r Range) String() string { return string(r.Start) + "-" + string(r.End) }

// ParseRange parses a non-empty range.
func ParseRange(s string) (Range, error) {
	start, end, ok := strings.Cut(s, "-")
	if !ok {
		return Range{}, fmt.Errorf("%.80q is not a range: want start-end", s)
	}
	a, err := ParseNumber(start)
	if err != nil {
		return Range{}, err
	}
	b, err := ParseNumber(end)
	if err != nil {
		return Range{}, err
	}
	r := Range{a, b}
	if r.Empty() {
		return Range{}, fmt.Errorf("%.80q is not a range: the end must be greater than the start", s)
	}
	return r, nil
}

// Empty reports whether r contains no number.
func (r Range) Empty() bool { return !r.Start.less(r.End) }

// Contains reports whether n is in r.
func (r Range) Contains(n Number) bool { return r.Start.less(n) && !r.End.less(n) }

// Overlaps reports whether r and o have a number in common.
func (r Range) Overlaps(o Range) bool {
	return !Range{later(r.Start, o.Start), earlier(r.End, o.End)}.Empty()
}
