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

// Harness creates the stores for the suite.
type Harness struct {
	// New creates an empty database for one test, and returns a function that opens a handle on it.
	// Tests run in parallel. The suite closes all handles before t.Cleanup.
	New func(t *testing.T) Open
	// Shared: several handles may be open at the same time.
	Shared bool
	// Within runs f in a user's transaction in the database of s, and commits if f returns nil. It
	// is required for stores with Transactions.
	Within func(ctx context.Context, s store.Store, f func(store.Tx) error) error
	// Pass advances the clock of a store whose Due or Scan lags. Nil: the suite waits.
	Pass func(ctx context.Context, d time.Duration)
}

// Open opens a handle on a database.
type Open func() (store.Store, error)

// Run runs the suite. It skips tests of undeclared abilities.
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
	needs func(*fixture) bool // nil: no requirement
}

func shared(f *fixture) bool       { return f.harness.Shared }
func transactions(f *fixture) bool { return f.traits.Transactions && f.harness.Within != nil }
func applies(f *fixture) bool      { return f.traits.Apply > 1 }
