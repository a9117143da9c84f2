package archive

import (
	"fmt"
	"slices"
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
		return Range{}, fmt.Errorf("%.80q is no range: want start-end", s)
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
		return Range{}, fmt.Errorf("%.80q is no range: it ends where it starts, or before", s)
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

// RangeSet is a set of numbers: ranges in order, none empty, none touching
// another. The zero RangeSet is empty.
type RangeSet []Range

// search returns the first range that ends at n or behind it.
func (s RangeSet) search(n Number) int {
	i, _ := slices.BinarySearchFunc(s, n, func(r Range, n Number) int { return r.End.Compare(n) })
	return i
}

// Contains reports that n is in the set.
func (s RangeSet) Contains(n Number) bool {
	i := s.search(n)
	return i < len(s) && s[i].Contains(n)
}

// Overlaps reports that some number of r is in the set.
func (s RangeSet) Overlaps(r Range) bool {
	i := s.search(r.Start.after())
	return i < len(s) && s[i].Overlaps(r)
}

// Union returns the set with all of r. It may change s.
func (s RangeSet) Union(r Range) RangeSet {
	if r.Empty() {
		return s
	}
	i := s.search(r.Start)
	j := i
	for ; j < len(s) && !r.End.less(s[j].Start); j++ {
		r = Range{earlier(r.Start, s[j].Start), later(r.End, s[j].End)}
	}
	return slices.Replace(s, i, j, r)
}

// Exclude returns the set without any of r. It may change s.
func (s RangeSet) Exclude(r Range) RangeSet {
	if r.Empty() {
		return s
	}
	i := s.search(r.Start)
	j := i
	var left []Range
	for ; j < len(s) && s[j].Start.less(r.End); j++ {
		for _, part := range []Range{{s[j].Start, earlier(s[j].End, r.Start)}, {later(s[j].Start, r.End), s[j].End}} {
			if !part.Empty() {
				left = append(left, part)
			}
		}
	}
	return slices.Replace(s, i, j, left...)
}

// String prints a RangeSet as ParseRangeSet reads it: ranges with commas between.
func (s RangeSet) String() string {
	parts := make([]string, len(s))
	for i, r := range s {
		parts[i] = r.String()
	}
	return strings.Join(parts, ",")
}

// ParseRangeSet reads ranges in any order.
func ParseRangeSet(text string) (s RangeSet, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		r, err := ParseRange(part)
		if err != nil {
			return nil, err
		}
		s = s.Union(r)
	}
	return s, nil
}
