package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/pawlhq/pawl/proof/mutants"
)

// scope is what a run tests.
type scope struct {
	root     string
	packages []string // import paths
	targets  []target // to be fuzzed
	known    []mutants.Mutant
	mutants  []string // names of those to run; nil: all
	failures []failure
}

// mergeTargets are the fuzz targets of a run with -changed: what strangers send, and what
// rows are decoded from. A target takes a quarter of a minute with its build.
var mergeTargets = []string{
	"FuzzConvert in action/imageaction", "FuzzDecode in ledger", "FuzzDialect in event", "FuzzPost in source/webhooksource",
}

// mostMutants bounds the mutants of a run with -changed. Each takes three seconds of two
// cores.
const mostMutants = 36

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
	if s.known, err = mutants.Read(os.DirFS(root)); err != nil {
		return nil, fmt.Errorf("read the mutants: %w", err)
	}
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
		s.targets = slices.DeleteFunc(s.targets, func(t target) bool { return !slices.Contains(mergeTargets, t.String()) })
		fmt.Printf("fuzz targets, for %v each: %v; the others are left to make nightly\n", o.fuzz, s.targets)
	}
	if slices.Contains(s.packages, mutantsPackage) {
		chosen, left := choose(mutantCandidates(s.known, c), mostMutants)
		tell(os.Stdout, "mutants", chosen, left)
		s.mutants = names(chosen)
	}
}
