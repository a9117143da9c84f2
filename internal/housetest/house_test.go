// Package housetest checks rules about the whole repository: imports, docs, sizes and style. Each test runs
// in the repository's root.
package housetest

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// The functions below read the source of this module for all operating systems.

const modulePath = "github.com/pawlhq/pawl"

type sourcePackage struct {
	dir   string // relative to the repository; "." for the root
	files []*sourceFile
}

type sourceFile struct {
	name  string // relative to the repository
	test  bool   // a _test.go file
	lines int
	*ast.File
}

func (p *sourcePackage) nonTestFiles() (files []*sourceFile) {
	for _, f := range p.files {
		if !f.test {
			files = append(files, f)
		}
	}
	return files
}

func testOnly(dir string) bool {
	return strings.HasSuffix(dir, "test") || dir == "internal/linearizable" || dir == "internal/virtualtime"
}

func importsOf(files []*sourceFile) []string {
	paths := make(map[string]bool)
	for _, f := range files {
		for _, spec := range f.Imports {
			if p, err := strconv.Unquote(spec.Path.Value); err == nil {
				paths[p] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(paths))
}

var sourceFiles = token.NewFileSet()

var readSource = sync.OnceValues(func() ([]*sourcePackage, error) {
	byDir := make(map[string]*sourcePackage)
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && outsideModule(name):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(name) != ".go":
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		file, err := parser.ParseFile(sourceFiles, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := path.Dir(name)
		p := cmp.Or(byDir[dir], &sourcePackage{dir: dir})
		byDir[dir] = p
		p.files = append(p.files, &sourceFile{
			name: name, test: strings.HasSuffix(name, "_test.go"), lines: strings.Count(string(text), "\n"), File: file,
		})
		return nil
	})
	byName := func(a, b *sourcePackage) int { return cmp.Compare(a.dir, b.dir) }
	return slices.SortedFunc(maps.Values(byDir), byName), err
})

func outsideModule(dir string) bool {
	base := filepath.Base(dir)
	if dir == "." {
		return false
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil || base == "testdata" || base == "bin" || base[0] == '.' || base[0] == '_'
}

func modulePackages(t *testing.T) []*sourcePackage {
	t.Helper()
	all, err := readSource()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 20 {
		t.Fatalf("only %d packages found: is this the repository's root?", len(all))
	}
	return all
}

func positionOf(n ast.Node) string { return sourceFiles.Position(n.Pos()).String() }
