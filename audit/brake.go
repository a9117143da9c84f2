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

func removalLimit(c *Counts, allow bool) int64 {
	if allow {
		return math.MaxInt64
	}
	return max(maxRemovals, c.Created/removalsOneIn)
}

// Brake limits the removals of the second pass, because the bucket may be emptied after the first
// pass.
type Brake struct {
	limit int64

	mu      sync.Mutex
	raised  int64
	refused bool
}

// NewBrake returns a brake that permits limit removals. raised is the number of removals that the
// audit has already written.
func NewBrake(limit, raised int64) *Brake { return &Brake{limit: limit, raised: raised} }

// reserve reports whether the pass may write n more removals. After it refuses once, it always
// refuses.
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

func (b *Brake) exhausted() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refused
}

func (b *Brake) unreserve(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.raised -= int64(n)
}

// secondPassOnly drops the counts that the first pass has already added.
func (c *Counts) secondPassOnly() Counts {
	return Counts{
		Inspected: c.Inspected, LostRemovals: c.LostRemovals, NoInput: c.NoInput, Repaired: c.Repaired,
		Withheld: c.Withheld, Inaccessible: c.Inaccessible, Contradicted: c.Contradicted,
	}
}
