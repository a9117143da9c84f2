package audit

import (
	"math"
	"sync"
)

// An audit writes no removals for a pipeline if their number exceeds both limits.
const (
	maxRemovals   = 100
	removalsOneIn = 10 // a tenth of the rows of existing objects
)

// removalLimit returns the number of removals that an audit may write for a pipeline. The
// parameter c has the counts of the first pass.
func removalLimit(c *Counts, allow bool) int64 {
	if allow {
		return math.MaxInt64
	}
	return max(maxRemovals, c.Created/removalsOneIn)
}

// Brake limits the removals that the second pass over a pipeline writes. The limit is needed
// because the bucket may be emptied after the first pass.
type Brake struct {
	limit int64

	mu      sync.Mutex
	raised  int64
	refused bool
}

// NewBrake returns a brake that permits limit removals. The parameter raised is the number of
// removals that the audit has already written.
func NewBrake(limit, raised int64) *Brake { return &Brake{limit: limit, raised: raised} }

// reserve counts n removals and reports whether the pass may write them. After it refuses once,
// it refuses every later call.
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

// unreserve returns the reservation of n removals that the pass did not write.
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
