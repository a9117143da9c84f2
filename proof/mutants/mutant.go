// Package mutants holds known-wrong variants of Pawl. Each variant breaks one rule
// of the protocol. A test builds every variant and plays simulated worlds with it,
// or runs the test that must fail. A checker that misses a mutant would also miss a
// real mistake in that rule.
//
// A mutant is a patch. Those of lock, archive and files lie in testdata/mutants of
// the product, all others in testdata here. The go command lays the changed files over
// the sources when it builds the mutant, so no mutant is ever in the sources or in a
// release.
package mutants

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/pawlhq/pawl/proof/sim"
)

// Mutant is one known-wrong variant.
type Mutant struct {
	Name string // the patch's file name, without the extension
	File string // the patch, below the root of the module
	Why  string // what goes wrong in production
	From string // which software is known to do it like that, if any
	// Budget is the number of worlds to play. One of them must violate an invariant,
	// and enough of them the same one that this is no accident.
	Budget uint64
	// Test replaces Budget if worlds notice the mutant too rarely, or not at all.
	Test  *Test
	Diffs []*gitdiff.File // one for each changed file
}

// Test is a run of go test that must fail.
type Test struct {
	Invariant sim.Invariant // the invariant that the test checks; zero: none
	Args      []string      // arguments of go test
	Says      string        // regular expression that matches the output of the failing test
}

// Apply returns the changed files, by their names below root.
func (m *Mutant) Apply(root string) (map[string]string, error) {
	files := map[string]string{}
	for _, d := range m.Diffs {
		b, err := os.ReadFile(filepath.Join(root, d.OldName))
		if err != nil {
			return nil, fmt.Errorf("mutant %s: %w", m.Name, err)
		}
		if files[d.OldName], err = Apply(string(b), d); err != nil {
			return nil, fmt.Errorf("mutant %s: %w", m.Name, err)
		}
	}
	return files, nil
}
