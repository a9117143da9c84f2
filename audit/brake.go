package audit

import (
	"math"
	"sync"
)

// The removals of one pipeline are withheld if they exceed both of these: a number, and
// a share (one in so many) of the rows that say that their object exists.
const (
	maxRemovals   = 100
	removalsOneIn = 10
)

// removalLimit returns how many removals an audit may raise in a pipeline after its
// first pass counted the rows.
func removalLimit(c *Counts, allow bool) int64 {
	if allow {
		return math.MaxInt64
	}
	return max(maxRemovals, c.Created/removalsOneIn)
}

// Brake bounds the removals that the second pass over a pipeline raises. The bucket may
// be emptied after the first pass counted them.
type Brake struct {
	limit int64

	mu      sync.Mutex
	raised  int64
	refused bool
}

// NewBrake returns a brake that permits so many removals, of which some were raised
// before.
func NewBrake(limit, raised int64) *Brake { return &Brake{limit: limit, raised: raised} }

// reserve reports whether n more removals may be raised. If so, it counts them. If not,
// no more are raised.
func (b *Brake) reserve(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refused = b.refused || b.raised+int64(n) > b.limit
	if b.refused {
		return false
	}
	b.raised += int64(n)
	return true
}

// exhausted reports whether removals were refused.
func (b *Brake) exhausted() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refused
}

// unreserve undoes take for n removals that were not raised.
func (b *Brake) unreserve(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.raised -= int64(n)
}

// secondPassOnly returns the counts of a second pass without what the first pass counted.
func (c *Counts) secondPassOnly() Counts {
	return Counts{
		Inspected: c.Inspected, LostRemovals: c.LostRemovals, NoInput: c.NoInput, Repaired: c.Repaired,
		Withheld: c.Withheld, Inaccessible: c.Inaccessible, Contradicted: c.Contradicted,
	}
}
