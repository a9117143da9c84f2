package housetest

import (
	"go/ast"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"unicode/utf8"
)

// Nine in ten files and functions are far below.
const (
	maxFileLines = 400
	maxFuncLines = 60
)

func TestSizes(t *testing.T) {
	t.Chdir("../..")
	for _, p := range modulePackages(t) {
		for _, f := range p.nonTestFiles() {
			if f.lines > maxFileLines {
				t.Errorf("%s has %d lines, want at most %d: split the file", f.name, f.lines, maxFileLines)
			}
			for _, d := range f.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				lines := sourceFiles.Position(fn.End()).Line - sourceFiles.Position(fn.Pos()).Line + 1
				if lines > maxFuncLines {
					t.Errorf("%s: %s has %d lines, want at most %d: split the function", positionOf(fn), fn.Name.Name, lines, maxFuncLines)
				}
			}
		}
	}
}

var todoMark = regexp.MustCompile(`\b(TODO|FIXME)\b`)

func TestNoTodoComments(t *testing.T) {
	t.Chdir("../..")
	for _, p := range modulePackages(t) {
		for _, f := range p.files {
			for _, group := range f.Comments {
				for _, c := range group.List {
					if mark := todoMark.FindString(c.Text); mark != "" {
						t.Errorf("%s: comment with %s: finish the work, or open an issue", positionOf(c), mark)
					}
				}
			}
		}
	}
}

// Readers of the source do not have that document. State the rule, or explain it in ARCHITECTURE.md.
var designReference = regexp.MustCompile(`\bDESI[G]N\b`)

func TestNoReferencesToTheDesignDocument(t *testing.T) {
	t.Chdir("../..")
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		base := filepath.Base(name)
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (base == "bin" || base[0] == '.'):
			return filepath.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(name)
		if err == nil && utf8.Valid(text) && designReference.Match(text) {
			t.Errorf("%s refers to the design document: state the rule, or refer to ARCHITECTURE.md", name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
