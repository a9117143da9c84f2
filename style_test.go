package pawl_test

import (
	"go/ast"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// How long things may be. Nine in ten are far below.
const (
	maxFileLines = 400
	maxFuncLines = 60
)

func TestSizes(t *testing.T) {
	for _, p := range modulePackages(t) {
		for _, f := range p.ships() {
			if f.lines > maxFileLines {
				t.Errorf("%s has %d lines: a file answers one question in at most %d", f.name, f.lines, maxFileLines)
			}
			for _, d := range f.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				lines := sourceFiles.Position(fn.End()).Line - sourceFiles.Position(fn.Pos()).Line + 1
				if lines > maxFuncLines {
					t.Errorf("%s: %s has %d lines: more than %d do not fit a screen", placeOf(fn), fn.Name.Name, lines, maxFuncLines)
				}
			}
		}
	}
}

// unfinished finds marks of work that was left for later.
var unfinished = regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b`)

func TestNothingLeftForLater(t *testing.T) {
	for _, p := range modulePackages(t) {
		for _, f := range p.files {
			for _, group := range f.Comments {
				for _, c := range group.List {
					if mark := unfinished.FindString(c.Text); mark != "" {
						t.Errorf("%s: a comment says %s: do it, or open an issue", placeOf(c), mark)
					}
				}
			}
		}
	}
}

// pure are the packages that take time and randomness as inputs, so that a test
// or a simulation can repeat what they did.
var pure = []string{"event", "ledger", "engine"}

// impure are the standard library's sources of both. What makes a generator from
// a given seed is allowed.
var impure = map[string]*regexp.Regexp{
	"time":         regexp.MustCompile(`^(Now|Since|Until|Sleep|Tick)$`),
	"math/rand":    regexp.MustCompile(`.`),
	"math/rand/v2": regexp.MustCompile(`^(N|Perm|Shuffle|(Int|Uint|Float|Norm|Exp)[0-9A-Za-z]*)$`),
	"crypto/rand":  regexp.MustCompile(`.`),
}

func TestTimeAndRandomnessAreInputs(t *testing.T) {
	for _, p := range modulePackages(t) {
		for _, dir := range pure {
			if p.dir != dir {
				continue
			}
			for _, f := range p.ships() {
				checkPure(t, f)
			}
		}
	}
}

func checkPure(t *testing.T, f *sourceFile) {
	t.Helper()
	forbidden := make(map[string]*regexp.Regexp) // by the name in this file
	for _, spec := range f.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		name := path[strings.LastIndexByte(path, '/')+1:]
		if path == "math/rand/v2" {
			name = "rand"
		}
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if impure[path] != nil {
			forbidden[name] = impure[path]
		}
	}
	ast.Inspect(f.File, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && forbidden[x.Name] != nil && forbidden[x.Name].MatchString(sel.Sel.Name) {
			t.Errorf("%s: %s.%s in a pure package: take it as an input", placeOf(sel), x.Name, sel.Sel.Name)
		}
		return true
	})
}
