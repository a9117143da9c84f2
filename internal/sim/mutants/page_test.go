package mutants

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/internal/sim"
)

var update = flag.Bool("update", false, "write docs/MUTANTS.md anew")

// page writes down what became of the mutants, or holds the page to it. With the
// default seed the same worlds violate the same invariants, every time.
func page(t *testing.T, found []result, played uint64) {
	t.Helper()
	name, now := filepath.Join(root(t), "docs", "MUTANTS.md"), render(found, played)
	if *update {
		if err := os.WriteFile(name, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	was, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(was) != now {
		t.Errorf("docs/MUTANTS.md is not what came out. Write it anew, and read what has changed:\n"+
			"\tgo test ./internal/sim/mutants -update && git diff docs\n%s", firstDifference(string(was), now))
	}
}

func firstDifference(was, now string) string {
	lines := strings.Split(now, "\n")
	for i, line := range strings.Split(was, "\n") {
		if i == len(lines) || line != lines[i] {
			return fmt.Sprintf("line %d was %s", i+1, line)
		}
	}
	return "there is more of it"
}

const introduction = `# Mutants

Known-wrong variants of Pawl, and what notices each. Simulated worlds show that the protocol keeps its invariants; these
show that the invariants would not be kept if one of its rules were left out, and that the checker would see it.

This page is written by its test, which builds every mutant, by ` + "`go build -overlay`" + `, so that none is ever in the
sources. Each plays as many worlds as its budget says, from the same seed on. The protocol itself has played %d of the
same worlds, and violated nothing.

` + "```sh" + `
go test ./internal/sim/mutants -timeout 40m
go test ./internal/sim/mutants -run 'TestMutants/an-older-event-wins$' -v
go test ./internal/sim/mutants -timeout 40m -seed 7
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

These are killed by other tests.

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
