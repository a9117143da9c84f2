package main

import (
	"path"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/pawlhq/pawl/proof/mutants"
)

const (
	mutantsDir     = "proof/mutants"
	mutantsPackage = "github.com/pawlhq/pawl/" + mutantsDir
)

func mutantCandidates(list []mutants.Mutant, c *changes) []candidate {
	var all []candidate
	for _, m := range list {
		one := candidate{name: m.Name, rank: unrelated}
		if why := c.find(func(file string) bool {
			return slices.ContainsFunc(m.Diffs, func(d *gitdiff.File) bool { return d.OldName == file })
		}); why != "" {
			one.rank, one.why = changedTarget, why
		} else if slices.Contains(c.files, m.File) {
			one.rank, one.why = changedTarget, "its definition has changed"
		} else if why := c.find(detectors(&m)); why != "" {
			one.rank, one.why = changedDetector, why
		}
		all = append(all, one)
	}
	return all
}

// The tests of a mutant are in the simulator, or in the package whose test must fail.
func detectors(m *mutants.Mutant) func(file string) bool {
	return func(file string) bool {
		dir := path.Dir(file)
		switch {
		case path.Ext(file) == ".patch": // mutantCandidates considers patches
			return false
		case dir == mutantsDir:
			return path.Ext(file) == ".go"
		case m.Test == nil:
			return inPackage(file, "proof/sim") || inPackage(file, "internal/simkit") || dir == mutantsDir+"/runworlds"
		}
		if strings.HasPrefix(file, "internal/simkit/") && slices.Contains(m.Test.Args, "TestWorlds$") {
			return true
		}
		pkg := path.Clean(m.Test.Args[0])
		if pkg == "files/internal/world" && inPackage(file, pkg) {
			return true // a simulator
		}
		return inPackage(file, pkg) && (dir != pkg || strings.HasSuffix(file, "_test.go"))
	}
}

func inPackage(file, dir string) bool {
	return path.Dir(file) == dir || strings.HasPrefix(file, dir+"/testdata/")
}
