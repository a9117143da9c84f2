// Package mutants holds known-wrong variants of Pawl: each leaves out, or gets
// wrong, one rule that it lives by. A test builds every one of them and plays
// simulated worlds with it, or runs the tests that are to notice. A checker that
// lets a mutant live would not notice if the rule were broken in earnest.
//
// A mutant is a change of the text of the shipped files, laid over them by the go
// command where it is built. So none of them is in the sources, nor in anything
// that is built from them. docs/MUTANTS.md lists them, with what killed each.
package mutants

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/pawlhq/pawl/internal/sim"
)

// Mutant is one known-wrong variant.
type Mutant struct {
	Name  string
	Edits []Edit
	diffs []*gitdiff.File // instead of Edits: the changes of a patch
	Why   string          // what goes wrong in life
	From  string          // who does it like that, where somebody is known to
	// Budget is how many worlds may be played until an invariant must have
	// been violated. So many violate the same one that it is no accident.
	Budget uint64
	// Test notices what worlds notice too rarely, or not at all: the mutant has
	// it instead of a Budget.
	Test *Test
}

// Edit replaces a text, that is in its file exactly once.
type Edit struct{ File, Old, New string }

// Test is a run of go test that must fail.
type Test struct {
	Invariant sim.Invariant // which it holds to; zero: none of them
	Args      []string      // of go test
	Says      string        // a regular expression of what it says then
}

// All lists the mutants.
func All() []Mutant {
	return slices.Concat(patches(), events, leases, endings, deciding, publishing, writing, auditing, stores, locks, committing, archives, uploads)
}

// Files returns the names of the files that the mutant changes.
func (m *Mutant) Files() (names []string) {
	for _, d := range m.diffs {
		names = append(names, d.OldName)
	}
	for _, e := range m.Edits {
		names = append(names, e.File)
	}
	return names
}

// Patch returns the changed files, by their names below root. It fails if a text
// is not where it was any more.
func (m *Mutant) Patch(root string) (map[string]string, error) {
	if m.diffs != nil {
		return m.apply(root)
	}
	files := map[string]string{}
	for _, e := range m.Edits {
		text, ok := files[e.File]
		if !ok {
			b, err := os.ReadFile(filepath.Join(root, e.File))
			if err != nil {
				return nil, fmt.Errorf("mutant %s: %w", m.Name, err)
			}
			text = string(b)
		}
		if n := strings.Count(text, e.Old); n != 1 {
			return nil, fmt.Errorf("mutant %s: %d times in %s, and not once:\n%s", m.Name, n, e.File, e.Old)
		}
		files[e.File] = strings.Replace(text, e.Old, e.New, 1)
	}
	return files, nil
}
