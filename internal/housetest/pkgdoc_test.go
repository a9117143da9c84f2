package housetest

import (
	"go/ast"
	"go/doc"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

// minDocLength is in characters.
const minDocLength = 60

func TestPackageDoc(t *testing.T) {
	t.Chdir("../..")
	for _, p := range modulePackages(t) {
		files := p.nonTestFiles()
		if len(files) == 0 {
			continue
		}
		begin := "Package " + files[0].Name.Name + " "
		if files[0].Name.Name == "main" {
			begin = "Command " + path.Base(p.dir) + " "
		}
		var comments []string
		for _, f := range files {
			if f.Doc != nil {
				comments = append(comments, f.Doc.Text())
			}
		}
		switch {
		case len(comments) != 1:
			t.Errorf("package %s has %d package comments: want one", p.dir, len(comments))
		case !strings.HasPrefix(comments[0], begin):
			t.Errorf("the comment of package %s starts with %.30q: want %q", p.dir, comments[0], begin)
		case len(comments[0]) < minDocLength:
			t.Errorf("the comment of package %s is too short: %q", p.dir, comments[0])
		}
	}
}

// The interface documents these methods.
var undocumentedMethods = []string{"Error", "Unwrap", "String", "MarshalText", "UnmarshalText"}

func TestExportedDoc(t *testing.T) {
	t.Chdir("../..")
	for _, p := range modulePackages(t) {
		files := p.nonTestFiles()
		if len(files) == 0 {
			continue
		}
		var trees []*ast.File
		for _, f := range files {
			trees = append(trees, f.File)
		}
		d, err := doc.NewFromFiles(sourceFiles, trees, path.Join(modulePath, p.dir), doc.PreserveAST)
		if err != nil {
			t.Errorf("package %s: %v", p.dir, err)
			continue
		}
		for _, m := range undocumented(d) {
			t.Errorf("%s: %s is exported and has no comment", p.dir, m)
		}
	}
}

func undocumented(d *doc.Package) (names []string) {
	check := func(name, text string) {
		if text == "" {
			names = append(names, name)
		}
	}
	values := func(all []*doc.Value) {
		for _, v := range all {
			names = append(names, undocumentedValues(v)...)
		}
	}
	values(d.Consts)
	values(d.Vars)
	for _, f := range d.Funcs {
		check(f.Name, f.Doc)
	}
	for _, typ := range d.Types {
		check(typ.Name, typ.Doc)
		values(typ.Consts)
		values(typ.Vars)
		for _, f := range typ.Funcs {
			check(f.Name, f.Doc)
		}
		for _, m := range typ.Methods {
			if !slices.Contains(undocumentedMethods, m.Name) {
				check(typ.Name+"."+m.Name, m.Doc)
			}
		}
	}
	return names
}

// One comment may document a whole group.
func undocumentedValues(v *doc.Value) (names []string) {
	if v.Doc != "" {
		return nil
	}
	for _, s := range v.Decl.Specs {
		spec, ok := s.(*ast.ValueSpec)
		if !ok || spec.Doc != nil || spec.Comment != nil {
			continue
		}
		for _, n := range spec.Names {
			if token.IsExported(n.Name) {
				names = append(names, n.Name)
			}
		}
	}
	return names
}
