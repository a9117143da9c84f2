// Package mutants holds known-wrong variants of Pawl. Each variant breaks one rule of the protocol.
// A test builds every variant, and runs simulated worlds with it or a test that must fail. A
// checker that misses a mutant would also miss a real mistake in that rule.
//
// A mutant is a patch. Patches of lock, archive and files are in testdata/mutants of that package,
// all others in testdata here. The go command replaces the changed files when it builds the mutant,
// so no mutant is ever in the sources or in a release.
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
	Name string // file name of the patch, without the extension
	File string // path of the patch, relative to the root of the module
	Why  string // what goes wrong in production with this variant
	From string // software that is known to behave like this variant, if any
	// Budget is the number of worlds to run. At least one of them must violate an invariant.
	// With -whole, several of them must violate the same invariant, so that chance cannot be
	// the cause.
	Budget uint64
	// Test replaces Budget if simulated worlds detect the mutant too rarely or never.
	Test  *Test
	Diffs []*gitdiff.File // one for each changed file
}

// Test is a run of go test that must fail.
type Test struct {
	Invariant sim.Invariant // invariant that the test checks; zero means none
	Args      []string      // arguments of go test
	Says      string        // regular expression that must match the output of the failing test
}

// Apply returns the contents of the changed files by file name relative to root.
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
