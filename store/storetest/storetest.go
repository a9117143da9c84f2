// Package storetest is the conformance suite for drivers of package store. A driver is
// complete when it passes:
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, storetest.Harness{New: ..., Shared: true})
//	}
//
// [Faulty] loses the answers of any store, for tests of the code above it.
package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/pawlhq/pawl/store"
)

// Harness makes the stores that the suite tests.
type Harness struct {
	// New makes an empty place for records and returns a function that opens a handle on
	// it. Run calls New once for each test, and tests run in parallel. New releases its
	// own resources with t.Cleanup; the suite closes all handles before that.
	New func(t *testing.T) Open
	// Shared: several handles may be open at once, like those of several processes.
	Shared bool
	// Within runs f in a transaction of the user in the database of s. It commits if f
	// returns nil, and otherwise rolls back and returns the error of f. It is required
	// if the Traits of the store declare Transactions.
	Within func(ctx context.Context, s store.Store, f func(store.Tx) error) error
	// Pass lets time pass by the clock of the store, for stores whose Due or Scan lags.
	// Nil: the suite waits in real time.
	Pass func(ctx context.Context, d time.Duration)
}

// Open opens a handle on a place for records.
type Open func() (store.Store, error)

// Run runs the suite. It holds the store to its [store.Traits] and leaves out the tests
// of abilities that neither the traits nor the harness declare.
func Run(t *testing.T, h Harness) {
	for _, c := range concerns {
		t.Run(c.name, func(t *testing.T) {
			for _, test := range c.tests {
				t.Run(test.name, func(t *testing.T) {
					t.Parallel()
					if f := newFixture(t, &h); test.needs == nil || test.needs(f) {
						test.run(f)
					}
				})
			}
		})
	}
}

// concerns lists the suite: one file for each, except that durable.go has the last three.
var concerns = []struct {
	name  string
	tests []test
}{
	{"Swap", swapTests},
	{"Apply", applyTests},
	{"Names", nameTests},
	{"Bodies", bodyTests},
	{"Due", dueTests},
	{"Scan", scanTests},
	{"Race", raceTests},
	{"Linear", linearTests},
	{"Model", modelTests},
	{"Cancel", cancelTests},
	{"Tx", txTests},
	{"Durable", durableTests},
	{"Traits", traitsTests},
}

type test struct {
	name  string
	run   func(*fixture)
	needs func(*fixture) bool // nil: nothing
}

func shared(f *fixture) bool       { return f.harness.Shared }
func transactions(f *fixture) bool { return f.traits.Transactions && f.harness.Within != nil }
func applies(f *fixture) bool      { return f.traits.Apply > 1 }
