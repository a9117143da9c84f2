package worker

import (
	"strings"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// Order says what decides about an object.
type Order uint8

// The orders; package pawl documents them for users.
const (
	StoreOrder Order = iota
	EventOrder
)

// Pipeline is one effect on the objects that it matches.
type Pipeline struct {
	Name    string
	Match   func(event.Object) bool
	Handler Handler
	// Output returns where an object's output goes. Nil: there is none.
	Output      func(ledger.RowKey) event.Object
	Order       Order
	EachVersion bool // each version of an object is a row of its own
	// Transactional: the handler completes its tasks in transactions of its own.
	Transactional        bool
	EventuallyConsistent bool // the store may hide an object for a while
	// Concurrency is how many attempts run at a time in slots that the pipeline
	// has for itself; 0: it shares those of Config.Concurrency.
	Concurrency int
}

// row returns the row that an event is about.
func (p *Pipeline) row(o event.Object) ledger.RowKey {
	k := ledger.RowKey{Pipeline: p.Name, Bucket: o.Bucket, Key: o.Key}
	if p.EachVersion {
		k.VersionID = o.VersionID
	}
	return k
}

// isOldVersionRemoval reports that an event removed one version of an object, while the pipeline
// follows the latest one by its events: without a look an old version cannot be told
// from the latest.
func (p *Pipeline) isOldVersionRemoval(e *event.Event) bool {
	return p.Order == EventOrder && !p.EachVersion && e.Kind == event.Removed && e.Object.VersionID != "" &&
		strings.HasSuffix(e.Name, ":Delete")
}
