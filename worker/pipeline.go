package worker

import (
	"strings"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// Order determines whether the object in the store or the event decides.
type Order uint8

// Orders; see package pawl.
const (
	StoreOrder Order = iota
	EventOrder
)

// Pipeline is one effect on the objects that match.
type Pipeline struct {
	Name    string
	Match   func(event.Object) bool
	Handler Handler
	// Output returns the location of an object's output. Nil: no output.
	Output      func(ledger.RowKey) event.Object
	Order       Order
	EachVersion bool // each version of an object has its own row
	// Transactional: the handler completes its tasks in its own transactions.
	Transactional        bool
	EventuallyConsistent bool
	// Concurrency is the number of reserved slots. 0: the common slots of Config.Concurrency.
	Concurrency int
}

func (p *Pipeline) row(o event.Object) ledger.RowKey {
	k := ledger.RowKey{Pipeline: p.Name, Bucket: o.Bucket, Key: o.Key}
	if p.EachVersion {
		k.VersionID = o.VersionID
	}
	return k
}

// Without a read, Pawl cannot know whether the removed version was the latest.
func (p *Pipeline) isOldVersionRemoval(e *event.Event) bool {
	return p.Order == EventOrder && !p.EachVersion && e.Kind == event.Removed && e.Object.VersionID != "" &&
		strings.HasSuffix(e.Name, ":Delete")
}
