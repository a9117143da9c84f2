// Package ledgertest is the suite that every ledger store has to pass. A
// backend exists when it does:
//
//	func TestConformance(t *testing.T) {
//		ledgertest.Run(t, ledgertest.Harness{New: ..., Durable: true, Shared: true})
//	}
//
// [Faulty] loses the answers of any store, for tests of what is above it.
package ledgertest

import (
	"context"
	"testing"
	"time"

	"github.com/pawlhq/pawl/ledger"
)

// Harness makes the stores that the suite tests, and declares what they can.
type Harness struct {
	// New makes a place for rows, empty at first, and returns how to open a
	// handle on it. It is called once a test, and the tests run in parallel.
	// What it holds itself it releases by t.Cleanup; the suite closes every
	// handle before that.
	New func(t *testing.T) Open
	// Durable declares that rows outlive the handle they were written by.
	Durable bool
	// Shared declares that several handles may be open at once, as those of
	// several processes are.
	Shared bool
	// Registers declares that the store is a [ledger.Registers].
	Registers bool
	// Complete completes a task in a transaction of the store, and commits it. It is
	// required if the store's [ledger.Traits] declare transactions.
	Complete func(ctx context.Context, s ledger.Store, c *ledger.Completion) error
	// Pass lets time pass by the store's clock, until what is due by its
	// [ledger.Traits] shows. Nil: real time passes.
	Pass func(ctx context.Context, d time.Duration)
}

// Open opens a handle on a place for rows.
type Open func() (ledger.Store, error)

// Run runs the suite. It holds the store to the [ledger.Traits] that it declares,
// and leaves out the parts that need an ability which the harness does not.
func Run(t *testing.T, h Harness) {
	for _, c := range concerns {
		t.Run(c.name, func(t *testing.T) {
			for _, test := range c.tests {
				if test.needs != nil && !test.needs(&h) {
					continue
				}
				t.Run(test.name, func(t *testing.T) {
					t.Parallel()
					if f := newFixture(t, &h); test.unless == nil || !test.unless(&f.traits) {
						test.run(f)
					}
				})
			}
		})
	}
}

// concerns lists the suite: one file for each.
var concerns = []struct {
	name  string
	tests []test
}{
	{"Swap", swapTests},
	{"Batch", batchTests},
	{"RoundTrip", roundTripTests},
	{"Keys", keyTests},
	{"Due", dueTests},
	{"Scan", scanTests},
	{"Own", ownTests},
	{"Race", raceTests},
	{"Linear", linearTests},
	{"Lost", lostTests},
	{"Cancel", cancelTests},
	{"Durable", durableTests},
	{"Traits", traitsTests},
	{"Complete", completeTests},
	{"Registers", registerTests},
	{"Model", modelTests},
}

type test struct {
	name  string
	run   func(*fixture)
	needs func(*Harness) bool // nil: nothing
	// unless: what a store with these traits does not promise. Nil: all promise it.
	unless func(*ledger.Traits) bool
}

func durable(h *Harness) bool { return h.Durable }
