package engine_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// pure has the permitted names of packages that know the time, produce random numbers or block.
var pure = map[string]func(name string) bool{
	"time": allBut("Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker",
		"Local", "LoadLocation"),
	"math/rand/v2": only("Rand"),
	"math/rand":    only(),
	"crypto/rand":  only(),
	"os":           only(),
	"net":          only(),
	"net/http":     only(),
	"runtime":      only(),
	"sync":         only(),
	"sync/atomic":  only(),
}

func only(names ...string) func(string) bool {
	return func(name string) bool { return slices.Contains(names, name) }
}

func allBut(names ...string) func(string) bool {
	return func(name string) bool { return !slices.Contains(names, name) }
}

// waits are the files that connect pure transitions to a store.
var waits = []string{"ledger/ledger.go", "ledger/rows.go"}

func TestEngineIsPure(t *testing.T) {
	for _, dir := range []string{"event", "ledger", "engine"} {
		files, err := filepath.Glob("../" + dir + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("no sources in %s: %v", dir, err)
		}
		for _, file := range files {
			name := dir + "/" + filepath.Base(file)
			if !strings.HasSuffix(name, "_test.go") && !slices.Contains(waits, name) {
				for _, fault := range impurities(t, file, nil) {
					t.Error(fault)
				}
			}
		}
	}
}

func TestPurityCheckFindsViolations(t *testing.T) {
	const source = `package p
import ("time"; r "math/rand/v2"; "os")
var now = time.Now
func f(x *r.Rand, d time.Duration) int {
	go func() {}()
	c := make(chan int)
	select { case <-c: default: }
	_ = os.Args
	return r.IntN(3) + x.IntN(3)
}`
	var what []string
	for _, fault := range impurities(t, "p.go", source) {
		what = append(what, fault[strings.LastIndexByte(fault, ' ')+1:])
	}
	want := []string{"time.Now", "go", "chan", "select", "receive", "os.Args", "math/rand/v2.IntN"}
	slices.Sort(what)
	slices.Sort(want)
	if !slices.Equal(what, want) {
		t.Errorf("found %q, want %q", what, want)
	}
}

func impurities(t *testing.T, file string, source any) (faults []string) {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	imports := importsOf(t, f)
	fault := func(n ast.Node, what string) {
		faults = append(faults, set.Position(n.Pos()).String()+": "+what)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			fault(n, "go")
		case *ast.SelectStmt:
			fault(n, "select")
		case *ast.ChanType:
			fault(n, "chan")
		case *ast.SendStmt:
			fault(n, "send")
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				fault(n, "receive")
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && imports[x.Name] != "" && !pure[imports[x.Name]](n.Sel.Name) {
				fault(n, imports[x.Name]+"."+n.Sel.Name)
			}
		}
		return true
	})
	return faults
}

func importsOf(t *testing.T, f *ast.File) map[string]string {
	t.Helper()
	imports := map[string]string{}
	for _, spec := range f.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if pure[path] == nil {
			continue
		}
		name := strings.TrimSuffix(path, "/v2")
		name = name[strings.LastIndexByte(name, '/')+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if name == "." {
			t.Errorf("package %s: import %s under its own name", f.Name.Name, path)
		}
		imports[name] = path
	}
	return imports
}
