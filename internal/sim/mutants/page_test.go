package mutants

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/internal/sim"
)

var update = flag.Bool("update", false, "write docs/MUTANTS.md anew")

func pageName(t *testing.T) string { return filepath.Join(root(t), "docs", "MUTANTS.md") }

func write(t *testing.T, page string) {
	t.Helper()
	if err := os.WriteFile(pageName(t), []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
}

// compare holds the page to the mutants that were run. The same worlds violate the same
// invariants, every time; but here each mutant has played only until one did.
func compare(t *testing.T, found []result) {
	t.Helper()
	page, err := os.ReadFile(pageName(t))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "|"); len(cells) > 3 {
			rows[strings.TrimSpace(cells[1])] = cells[2:]
		}
	}
	for _, r := range found {
		if why := r.differs(rows[r.Name]); why != "" {
			t.Errorf("docs/MUTANTS.md: %s: %s. Write it anew, and read what has changed:\n"+
				"\tgo test ./internal/sim/mutants -timeout 40m -update && git diff docs", r.Name, why)
		}
		if !strings.Contains(string(page), "**"+r.Name+".** "+r.Why) {
			t.Errorf("docs/MUTANTS.md: what goes wrong with %s is said differently now", r.Name)
		}
	}
	if n := strings.Count(string(page), "\n**"); n != len(All()) {
		t.Errorf("docs/MUTANTS.md has %d mutants, and there are %d", n, len(All()))
	}
}

// differs says in what the cells behind a mutant's name are not what was found.
func (r *result) differs(cells []string) string {
	switch {
	case len(cells) == 0:
		return "it is not there"
	case r.Test != nil:
		if !strings.Contains(cells[1], "go test "+strings.Join(r.Test.Args, " ")) {
			return "its test is another now"
		}
	case strings.TrimSpace(cells[0]) != strconv.FormatUint(r.Budget, 10):
		return "its budget is another now"
	default:
		for i, name := range columns() {
			if r.violated[name] > 0 && strings.TrimSpace(cells[i+1]) == "" {
				return name + " is violated, too"
			}
		}
	}
	return ""
}

const introduction = `# Mutants

Known-wrong variants of Pawl, and what notices each. Simulated worlds show that the protocol keeps its invariants; these
show that the invariants would not be kept if one of its rules were left out, and that the checker would see it.

This page is written by its test, which builds every mutant, by ` + "`go build -overlay`" + `, so that none is ever in the
sources. Each has played as many worlds as its budget says, from the same seed on; a plain test ends with the first that
violates something. The protocol itself has played %d of the same worlds, and violated nothing.

` + "```sh" + `
go test ./internal/sim/mutants
go test ./internal/sim/mutants -run 'TestMutants/an-older-event-wins$' -v
go test ./internal/sim/mutants -seed 7
go test ./internal/sim/mutants -timeout 40m -update
` + "```" + `

The second repeats one, the third plays other worlds, and the last writes this page anew.

## The invariants

What I9, I13 and I14 notice alone was shown to the one test that holds to them, and to no worlds.

| | what must hold | alone in killing |
|---|---|---|
`

const matrix = `
## Worlds that violated each

A number is how many of the worlds played violated the invariant; bold: it is the only one that noticed.

`

const tested = `
## What worlds notice too rarely, or not at all

These are killed by other tests; those of packages lock, archive and filesim are worlds, too, of locks, updates, archives and files.

| mutant | invariant | test |
|---|---|---|
`

// render returns the page. found is in the order of All.
func render(found []result, played uint64) string {
	var b strings.Builder
	fmt.Fprintf(&b, introduction, played)
	for i := sim.I1; i <= sim.I14; i++ {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", i, i.Says(), strings.Join(soleVictims(found, i), ", "))
	}
	b.WriteString(matrix)
	inWorlds := columns()
	fmt.Fprintf(&b, "| mutant | played | %s |\n|---|--:|%s\n", strings.Join(inWorlds, " | "), strings.Repeat("--:|", len(inWorlds)))
	for _, r := range found {
		if r.Test == nil {
			fmt.Fprintf(&b, "| %s | %d |%s\n", r.Name, r.Budget, cells(r.violated, inWorlds))
		}
	}
	b.WriteString(tested)
	for _, r := range found {
		if r.Test != nil {
			held := ""
			if r.Test.Invariant != 0 {
				held = r.Test.Invariant.String()
			}
			fmt.Fprintf(&b, "| %s | %s | `go test %s` |\n", r.Name, held, strings.Join(r.Test.Args, " "))
		}
	}
	b.WriteString("\n## What goes wrong\n")
	for _, r := range found {
		fmt.Fprintf(&b, "\n**%s.** %s", r.Name, r.Why)
		if r.From != "" {
			fmt.Fprintf(&b, " Known from %s.", r.From)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// columns lists the invariants that hold in each world.
func columns() (names []string) {
	for i := sim.I1; i <= sim.I14; i++ {
		if i != sim.I9 && i < sim.I13 {
			names = append(names, i.String())
		}
	}
	return names
}

func cells(violated map[string]uint64, names []string) string {
	var b strings.Builder
	for _, i := range names {
		switch n := violated[i]; {
		case n == 0:
			b.WriteString(" |")
		case len(violated) == 1:
			fmt.Fprintf(&b, " **%d** |", n)
		default:
			fmt.Fprintf(&b, " %d |", n)
		}
	}
	return b.String()
}

// soleVictims lists the mutants that an invariant kills, and no other.
func soleVictims(found []result, i sim.Invariant) (names []string) {
	for _, r := range found {
		if len(r.violated) == 1 && r.violated[i.String()] > 0 {
			names = append(names, r.Name)
		}
	}
	slices.Sort(names)
	return names
}
