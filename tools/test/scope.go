package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// scope is what a run tests.
type scope struct {
	root     string
	packages []string // import paths
	targets  []target // to be fuzzed
	mutants  []string // their names; nil: all
	failures []failure
}

// What a run with -changed takes at least, whatever has changed, and at most.
// A target takes a quarter of a minute with its build, and a mutant three seconds of
// two cores.
var (
	targetShare = share{least: 3, most: 4}
	mutantShare = share{least: 8, most: 36}
)

// look finds what is to be tested. With -changed it says what it chose, and why.
func (o options) look(ctx context.Context, root string) (*scope, error) {
	s := &scope{root: root}
	cmd := exec.CommandContext(ctx, "go", append([]string{"list"}, o.packages...)...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing packages: %w", err)
	}
	s.packages = strings.Fields(string(out))
	if o.fuzz > 0 || o.nightly {
		if s.targets, err = fuzzTargets(ctx, root, o.packages); err != nil {
			return nil, err
		}
	}
	if o.changed && !o.nightly {
		s.reduce(o, lookBack(ctx, root))
	}
	return s, nil
}

// reduce leaves fuzz targets and mutants to another run.
func (s *scope) reduce(o options, c *changes) {
	fmt.Printf("== what is left out\n%s\n", c)
	if o.fuzz > 0 {
		chosen, left := targetShare.choose(targetCandidates(s.targets, c), c.head)
		tell(os.Stdout, "fuzz targets, for "+o.fuzz.String()+" each", chosen, left)
		s.targets = slices.DeleteFunc(s.targets, func(t target) bool { return !slices.Contains(names(chosen), t.String()) })
	}
	if slices.Contains(s.packages, mutantsPackage) {
		chosen, left := mutantShare.choose(mutantCandidates(c), c.head)
		tell(os.Stdout, "mutants", chosen, left)
		s.mutants = names(chosen)
	}
}

// targetCandidates ranks the targets by whether their package has changed.
func targetCandidates(targets []target, c *changes) []candidate {
	var all []candidate
	for _, t := range targets {
		one := candidate{name: t.String(), rank: waiting}
		if one.why = c.find(func(file string) bool { return inPackage(file, t.dir()) }); one.why != "" {
			one.rank = touched
		}
		all = append(all, one)
	}
	return all
}
