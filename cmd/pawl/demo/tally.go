package demo

import (
	"fmt"
	"sync"
)

// Changes counts the changes of a bucket, as its store saw them.
type Changes struct {
	Put         int `json:"put"` // new objects
	Overwritten int `json:"overwritten"`
	Removed     int `json:"removed"`
}

func (c Changes) sum() int { return c.Put + c.Overwritten + c.Removed }

// String lists the counts.
func (c Changes) String() string {
	return fmt.Sprintf("%d put, %d overwritten, %d removed", c.Put, c.Overwritten, c.Removed)
}

type tally struct {
	mu      sync.Mutex
	changes Changes
}

func (t *tally) add(c change) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case c.removed:
		t.changes.Removed++
	case c.existed:
		t.changes.Overwritten++
	default:
		t.changes.Put++
	}
}

func (t *tally) count() Changes {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changes
}
