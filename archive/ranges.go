package archive

import (
	"fmt"
	"strings"
)

// Range is the numbers above Start, up to End and with it.
type Range struct {
	Start Number `json:"start"`
	End   Number `json:"end"`
}

// String prints a Range as ParseRange reads it: "start-end".
func (r Range) String() string { return string(r.Start) + "-" + string(r.End) }

// ParseRange reads a Range that is not empty.
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

// Empty reports that there is nothing in r.
func (r Range) Empty() bool { return !r.Start.less(r.End) }

// Contains reports that n is in r.
func (r Range) Contains(n Number) bool { return r.Start.less(n) && !r.End.less(n) }

// Overlaps reports that some number is in both.
func (r Range) Overlaps(o Range) bool {
	return !Range{later(r.Start, o.Start), earlier(r.End, o.End)}.Empty()
}
