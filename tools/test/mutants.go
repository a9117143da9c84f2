package main

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlhq/pawl/internal/sim/mutants"
)

const (
	mutantsDir     = "internal/sim/mutants"
	mutantsPackage = "github.com/pawlhq/pawl/" + mutantsDir
)

// mutantCandidates ranks the mutants by what has changed.
func mutantCandidates(ctx context.Context, c *changes) ([]candidate, error) {
	edited, err := editedDefinitions(ctx, c)
	if err != nil {
		return nil, err
	}
	var all []candidate
	for _, m := range mutants.All() {
		one := candidate{name: m.Name, rank: waiting}
		if why := c.find(func(file string) bool {
			return slices.Contains(m.Files(), file)
		}); why != "" {
			one.rank, one.why = touched, why
		} else if edited[m.Name] || slices.Contains(c.files, mutantsDir+"/testdata/"+m.Name+".patch") {
			one.rank, one.why = touched, "its definition has changed"
		} else if why := c.find(noticing(&m)); why != "" {
			one.rank, one.why = watched, why
		}
		all = append(all, one)
	}
	return all, nil
}

// noticing matches the files that decide whether the mutant is noticed: those of
// the simulator, or the tests of the package whose test is to fail.
func noticing(m *mutants.Mutant) func(file string) bool {
	return func(file string) bool {
		dir := path.Dir(file)
		switch {
		case dir == mutantsDir: // definitions are compared one by one
			return path.Base(file) == "mutants_test.go" || path.Base(file) == "mutant.go"
		case m.Test == nil:
			return inPackage(file, "internal/sim") || inPackage(file, "internal/tape") || dir == mutantsDir+"/play"
		}
		pkg := path.Clean(m.Test.Args[0])
		return inPackage(file, pkg) && (dir != pkg || strings.HasSuffix(file, "_test.go"))
	}
}

// inPackage reports that the file is one of the package in dir, or of its testdata.
func inPackage(file, dir string) bool {
	return path.Dir(file) == dir || strings.HasPrefix(file, dir+"/testdata/")
}

// editedDefinitions names the mutants whose definition differs from the base's.
func editedDefinitions(ctx context.Context, c *changes) (map[string]bool, error) {
	edited := map[string]bool{}
	for _, file := range c.files {
		if path.Dir(file) != mutantsDir || path.Ext(file) != ".go" {
			continue
		}
		now, err := os.ReadFile(filepath.Join(c.root, file))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		before, _ := c.git(ctx, "show", c.base+":"+file) // nothing if the file is new
		old := definitions(before)
		for name, text := range definitions(string(now)) {
			edited[name] = edited[name] || old[name] != text
		}
	}
	maps.DeleteFunc(edited, func(_ string, differs bool) bool { return !differs })
	return edited, nil
}

// definitions returns the text of each mutant of a file, by its name.
func definitions(source string) map[string]string {
	found := map[string]string{}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", source, 0)
	if err != nil {
		return found // no Go, as the text before the first commit
	}
	ast.Inspect(file, func(n ast.Node) bool {
		lit, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		for _, element := range lit.Elts {
			pair, ok := element.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			key, isIdent := pair.Key.(*ast.Ident)
			value, isText := pair.Value.(*ast.BasicLit)
			if isIdent && isText && key.Name == "Name" {
				name, _ := strconv.Unquote(value.Value)
				found[name] = source[fset.Position(lit.Pos()).Offset:fset.Position(lit.End()).Offset]
			}
		}
		return true
	})
	return found
}
