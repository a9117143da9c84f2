package housetest

import (
	"fmt"
	"go/ast"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/cmd/pawl/config"
	"github.com/pawlhq/pawl/cmd/pawl/parts"
)

// configRow matches a field's path and default in docs/CONFIGURATION.md.
var (
	configRow     = regexp.MustCompile("(?m)^\\| `([a-z_.\\[\\]]+)` \\|([^|]*)\\|")
	configDefault = regexp.MustCompile(`Default:\s+(.*?)[.,](\s|$)`)
)

func TestConfigurationReference(t *testing.T) {
	t.Chdir("../..")
	text, err := os.ReadFile("docs/CONFIGURATION.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := make(map[string]string)
	for _, m := range configRow.FindAllStringSubmatch(string(text), -1) {
		rows[m[1]] = strings.ReplaceAll(m[2], "`", "")
	}
	fields := configFields(t)
	for _, path := range slices.Sorted(maps.Keys(fields)) {
		row, ok := rows[path]
		if !ok {
			t.Errorf("docs/CONFIGURATION.md has no row for %s", path)
			continue
		}
		want := strings.ReplaceAll(fields[path], `"`, "")
		if want != "" && !strings.Contains(row, want) {
			t.Errorf("docs/CONFIGURATION.md gives %q as the default of %s, but its comment %q", row, path, want)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(rows)) {
		if _, ok := fields[path]; !ok {
			t.Errorf("docs/CONFIGURATION.md has a row for %s, which is not a field", path)
		}
	}
}

// configFields returns the path of every field of pawl.yaml, with the default in its comment.
func configFields(t *testing.T) map[string]string {
	t.Helper()
	structs := make(map[string]*ast.StructType)
	for _, p := range modulePackages(t) {
		if p.dir != "cmd/pawl/config" && p.dir != "cmd/pawl/parts" {
			continue
		}
		for _, f := range p.nonTestFiles() {
			ast.Inspect(f.File, func(n ast.Node) bool {
				if spec, ok := n.(*ast.TypeSpec); ok {
					if s, ok := spec.Type.(*ast.StructType); ok {
						structs[spec.Name.Name] = s
					}
				}
				return true
			})
		}
	}
	fields := make(map[string]string)
	var walk func(s *ast.StructType, path string)
	walk = func(s *ast.StructType, path string) {
		for _, f := range s.Fields.List {
			for _, k := range partKinds[tag(f, "part")] {
				at := path + "." + k.Name
				fields[at] = ""
				walk(structs[reflect.TypeOf(k.Config).Name()], at)
			}
			name := tag(f, "yaml")
			if name == "" || tag(f, "part") != "" {
				continue
			}
			at := strings.TrimPrefix(path+"."+name, ".")
			fields[at] = ""
			if m := configDefault.FindStringSubmatch(f.Doc.Text()); m != nil {
				fields[at] = m[1]
			}
			inner, list := typeName(f.Type)
			if list {
				at += "[]"
			}
			if s := structs[inner]; s != nil {
				walk(s, at)
			}
		}
	}
	if structs["File"] == nil {
		t.Fatal("cmd/pawl/config has no struct File")
	}
	walk(structs["File"], "")
	if len(fields) < 40 {
		t.Fatalf("only %d fields found", len(fields))
	}
	return fields
}

// partKinds are the kinds of parts, by the tag of the field that holds the part.
var partKinds = map[string][]config.Kind{"source": parts.Table.Sources, "action": parts.Table.Actions}

func tag(f *ast.Field, name string) string {
	if f.Tag == nil {
		return ""
	}
	return reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get(name)
}

// typeName skips pointers and lists.
func typeName(x ast.Expr) (name string, list bool) {
	switch x := x.(type) {
	case *ast.StarExpr:
		return typeName(x.X)
	case *ast.ArrayType:
		name, _ = typeName(x.Elt)
		return name, true
	}
	return fmt.Sprint(x), false
}
