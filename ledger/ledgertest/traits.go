package ledgertest

import (
	"github.com/pawlhq/pawl/ledger"
)

var traitsTests = []test{{name: "Sound", run: testTraits}}

// What a store declares makes sense, and is the same each time.
func testTraits(f *fixture) {
	s := bare(f.store)
	t := ledger.TraitsOf(s)
	_, lists := s.(ledger.PipelineLister)
	switch {
	case t != ledger.TraitsOf(s):
		f.Error("the traits differ from one call to the next")
	case t.Batch < 1 || t.Swaps < 1 || t.History < 0 || t.DueLag < 0:
		f.Errorf("a limit is below its least: %+v", t)
	case t.ScanUnordered && !lists:
		f.Error("a store that scans in no order must be a ledger.PipelineLister")
	}
}
