package audit

import (
	"math"
	"sync"
)

// The removals of a pipeline are withheld if they exceed both limits.
const (
	maxRemovals   = 100
	removalsOneIn = 10 // one in 10 rows of existing objects
)

// removalLimit returns the number of removals that an audit may raise in a pipeline. c
// are the counts of the first pass.
func removalLimit(c *Counts, allow bool) int64 {
	if allow {
		return math.MaxInt64
	}
	return max(maxRemovals, c.Created/removalsOneIn)
}

// Brake limits the removals that the second pass over a pipeline raises, because the
// bucket may be emptied after the first pass.
type Brake struct {
	limit int64

	mu      sync.Mutex
	raised  int64
	refused bool
}

// NewBrake returns a brake that permits limit removals. raised of them were raised
// before.
func NewBrake(limit, raised int64) *Brake { return &Brake{limit: limit, raised: raised} }

// reserve counts n removals and reports whether they may be raised. After the first
// refusal it refuses all.
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

// exhausted reports whether reserve has refused removals.
func (b *Brake) exhausted() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refused
}

// unreserve returns the reservation of n removals that were not raised.
func (b *Brake) unreserve(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.raised -= int64(n)
}

// secondPassOnly returns the counts that a second pass adds to those of the first pass.
func (c *Counts) secondPassOnly() Counts {
	return Counts{
		Inspected: c.Inspected, LostRemovals: c.LostRemovals, NoInput: c.NoInput, Repaired: c.Repaired,
		Withheld: c.Withheld, Inaccessible: c.Inaccessible, Contradicted: c.Contradicted,
	}
}
