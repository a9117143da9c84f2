// Package mutants holds known-wrong variants of Pawl, each of which breaks one rule of the
// protocol. A checker that misses a mutant would also miss a real mistake.
//
// A mutant is a patch in testdata/mutants of lock, archive or files, or in testdata here. The go
// command applies it as an overlay, so no mutant is in the sources.
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
	Name string // file name without the extension
	File string // path relative to the root of the module
	Why  string // what goes wrong in production
	From string // software that behaves like this, if any
	// Budget is the number of worlds to run, of which one must violate an invariant. With -whole,
	// several must violate the same one.
	Budget uint64
	// Test replaces Budget if worlds detect the mutant too rarely or never.
	Test  *Test
	Diffs []*gitdiff.File
}

// Test is a run of go test that must fail.
type Test struct {
	Invariant sim.Invariant // zero means none
	Args      []string      // of go test
	Says      string        // regular expression
}

// Apply returns the contents of the changed files by file name.
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
