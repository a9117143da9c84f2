package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"github.com/pawlhq/pawl/proof/mutants"
)

type scope struct {
	root     string
	packages []string // import paths
	targets  []target
	known    []mutants.Mutant
	mutants  []string // names; nil means all
	long     []target // skipped by a quick run
	failures []failure
}

// mergeTargets parse external input or decode rows. Each takes 15 seconds with its build.
var mergeTargets = []string{
	"FuzzConvert in action/imageaction", "FuzzDecode in ledger", "FuzzDialect in event", "FuzzPost in source/webhooksource",
}

// Each mutant takes three seconds on two cores.
const maxMutants = 36

func (o options) findScope(ctx context.Context, root string) (*scope, error) {
	s := &scope{root: root}
	cmd := exec.CommandContext(ctx, "go", append([]string{"list"}, o.packages...)...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	s.packages = strings.Fields(string(out))
	if s.known, err = mutants.Read(os.DirFS(root)); err != nil {
		return nil, fmt.Errorf("read the mutants: %w", err)
	}
	switch {
	case o.ci:
		if s.targets, err = findTests(ctx, root, o.packages, fuzzTest); err == nil {
			s.reduce(findChanges(ctx, root))
		}
	case o.fuzz > 0 || o.nightly:
		s.targets, err = fuzzTargets(ctx, root, o.packages)
	}
	if err == nil && o.isQuick() {
		s.long, err = findTests(ctx, root, o.packages, longTest)
	}
	return s, err
}

var longTest = regexp.MustCompile(`(?m)^func (Test\w*)\(t \*testing\.T\) \{\n\tservertest\.Long\(t\)$`)

func (s *scope) leftOut() string {
	list := []string{"tests that need Java, Node, Python, Terraform, Prometheus or a browser", "most of TestExplore and TestKills"}
	for _, t := range s.long {
		list = append(list, t.name)
	}
	return "skipped tests, which `go run ./tools/test -ci` runs: " + strings.Join(list, ", ") + "; -ci runs some mutants, make nightly runs all"
}

func (s *scope) reduce(c *changes) {
	fmt.Printf("== selection\n%s\n", c)
	s.targets = slices.DeleteFunc(s.targets, func(t target) bool { return !slices.Contains(mergeTargets, t.String()) })
	fmt.Printf("fuzz targets: %v; make nightly runs the others\n", s.targets)
	if slices.Contains(s.packages, mutantsPackage) {
		chosen, left := choose(mutantCandidates(s.known, c), maxMutants)
		printChosen(os.Stdout, "mutants", chosen, left)
		s.mutants = names(chosen)
	}
}
