package housetest

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/action"
	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/parts"
	"github.com/pawlhq/pawl/cmd/pawl/root"
)

type guide struct{ name, text string }

func guides(t *testing.T) (all []guide) {
	t.Helper()
	names := []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "GOVERNANCE.md", "AGENTS.md"}
	more, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(names, more...) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, guide{name, string(text)})
	}
	return all
}

var (
	block    = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```")
	anyBlock = regexp.MustCompile("(?ms)^```.*?^```")
)

func (g *guide) blocks(language string) (texts []string) {
	for _, m := range block.FindAllStringSubmatch(g.text, -1) {
		if m[1] == language {
			texts = append(texts, m[2])
		}
	}
	return texts
}

func (g *guide) prose() string { return anyBlock.ReplaceAllString(g.text, "") }

// Excerpts are not marked as yaml.
func TestGuidesYAML(t *testing.T) {
	t.Chdir("../..")
	anything := func(string) (string, bool) { return "x", true }
	for _, g := range guides(t) {
		for _, text := range g.blocks("yaml") {
			if _, err := parts.Table.Parse(g.name, []byte(text), anything); err != nil {
				t.Errorf("%v in:\n%s", err, text)
			}
		}
	}
}

func TestExamplesYAML(t *testing.T) {
	t.Chdir("../..")
	names, err := filepath.Glob("docs/examples/*.yaml")
	more, errMore := filepath.Glob("examples/*/*.yaml")
	if err != nil || errMore != nil || len(names) == 0 || len(more) == 0 {
		t.Fatalf("no examples: %v %v", err, errMore)
	}
	for _, name := range append(names, more...) {
		if _, err := parts.Table.Load(name, func(string) (string, bool) { return "x", true }); err != nil {
			t.Error(err)
		}
	}
}

// Commands start a line, or follow a pipe or prompt.
var pawlCommand = regexp.MustCompile(`(?m)(?:^ *|[|;&(] *|\$ )(?:go run \./cmd/|bin/|\./)?pawl((?: [^\n|;&()#]*)?)`)

func TestGuidesCommands(t *testing.T) {
	t.Chdir("../..")
	seen := 0
	for _, g := range guides(t) {
		for _, text := range append(g.blocks("sh"), g.blocks("console")...) {
			text = strings.ReplaceAll(text, "\\\n", " ")
			for _, m := range pawlCommand.FindAllStringSubmatch(text, -1) {
				seen++
				checkCommand(t, g.name, strings.Fields(m[1]))
			}
		}
	}
	if seen < 8 {
		t.Errorf("only %d commands found in the guides", seen)
	}
}

var subcommand = regexp.MustCompile(`^[a-z]+$`)

func checkCommand(t *testing.T, guide string, words []string) {
	t.Helper()
	if len(words) == 0 {
		t.Errorf("%s: pawl without a command", guide)
		return
	}
	var help, errs bytes.Buffer
	if end := slices.Index(words, "--"); end >= 0 {
		words = words[:end] // arguments of another program
	}
	asked := []string{words[0], "--help"}
	if len(words) > 1 && subcommand.MatchString(words[1]) {
		asked = []string{words[0], words[1], "--help"}
	}
	if code := root.Main(t.Context(), asked, app.Streams{In: strings.NewReader(""), Out: &help, Err: &errs}); code != 0 {
		t.Errorf("%s: pawl %s: %s", guide, words[0], errs.String())
		return
	}
	// For an unknown command, --help prints the help of pawl itself.
	if words[0][0] != '-' && !strings.Contains(help.String(), "pawl "+words[0]) {
		t.Errorf("%s: unknown command pawl %s", guide, words[0])
		return
	}
	for _, w := range words[1:] {
		flag, _, _ := strings.Cut(w, "=")
		if len(flag) < 2 || flag[0] != '-' {
			continue
		}
		if !regexp.MustCompile(`(?m)(^|\s|, )` + regexp.QuoteMeta(flag) + `[ ,]`).MatchString(help.String()) {
			t.Errorf("%s: pawl %s has no flag %s", guide, words[0], flag)
		}
	}
}

// Indentation does not matter.
func TestReadmeGo(t *testing.T) {
	t.Chdir("../..")
	var example []byte
	for _, name := range []string{"example_test.go", "lock/example_test.go", "metrics/prom/example_test.go", "examples/library/main.go"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		example = append(example, b...)
	}
	for _, g := range guides(t) {
		for _, text := range g.blocks("go") {
			if !strings.Contains(withoutIndent(string(example)), withoutIndent(text)) {
				t.Errorf("%s shows Go code that is in no example:\n%s", g.name, text)
			}
		}
	}
}

func TestGuideProgram(t *testing.T) {
	t.Chdir("../..")
	program, err := os.ReadFile("examples/library/main.go")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(guides(t), func(g guide) bool { return slices.Contains(g.blocks("go"), string(program)) }) {
		t.Error("no guide shows examples/library/main.go as it is")
	}
}

func withoutIndent(s string) string { return indent.ReplaceAllString(s, "\n") }

var indent = regexp.MustCompile(`\n[ \t]+`)

var (
	makeCommand  = regexp.MustCompile(`(?m)^make ([a-z]+)`)
	makeTarget   = regexp.MustCompile(`(?m)^([a-z]+):`)
	testSelector = regexp.MustCompile(`-(?:run|bench|fuzz)[ =]'?\^?([A-Z]\w+)`)
)

func TestGuidesTargets(t *testing.T) {
	t.Chdir("../..")
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	targets := make(map[string]bool)
	for _, m := range makeTarget.FindAllStringSubmatch(string(makefile), -1) {
		targets[m[1]] = true
	}
	funcs := testFuncs(t)
	for _, g := range guides(t) {
		for _, text := range g.blocks("sh") {
			for _, m := range makeCommand.FindAllStringSubmatch(text, -1) {
				if !targets[m[1]] {
					t.Errorf("%s: the Makefile has no target %s", g.name, m[1])
				}
			}
			for _, m := range testSelector.FindAllStringSubmatch(text, -1) {
				if !slices.ContainsFunc(funcs, func(f string) bool { return strings.Contains(f, m[1]) }) {
					t.Errorf("%s: unknown test, benchmark or fuzz target %s", g.name, m[1])
				}
			}
		}
	}
}

func testFuncs(t *testing.T) (names []string) {
	t.Helper()
	for _, p := range modulePackages(t) {
		for _, f := range p.files {
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && f.test {
					names = append(names, fn.Name.Name)
				}
			}
		}
	}
	var others []string // of other modules
	for _, pattern := range []string{"bench/*_test.go", "cmd/pawl/demo/browser/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no files %s: %v", pattern, err)
		}
		others = append(others, files...)
	}
	for _, name := range others {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range benchmark.FindAllSubmatch(text, -1) {
			names = append(names, string(m[1]))
		}
	}
	return names
}

var benchmark = regexp.MustCompile(`(?m)^func (Benchmark\w+)`)

var (
	link       = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	sourceName = regexp.MustCompile("`([a-z.][\\w./{},*-]*(?:\\.go|/))`")
	nameInFile = regexp.MustCompile("`(?:\\w+\\.)?(\\w+)` in\\s+`([\\w/]+\\.go)`")
)

func TestGuidesLinksAndFiles(t *testing.T) {
	t.Chdir("../..")
	for _, g := range guides(t) {
		for _, m := range link.FindAllStringSubmatch(g.prose(), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(g.name), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", g.name, m[1], err)
			}
		}
		for _, m := range sourceName.FindAllStringSubmatch(g.prose(), -1) {
			if found, err := filepath.Glob(m[1]); err != nil || len(found) == 0 {
				t.Errorf("%s names %s, which does not exist (%v)", g.name, m[1], err)
			}
		}
		for _, m := range nameInFile.FindAllStringSubmatch(g.prose(), -1) {
			text, err := os.ReadFile(m[2])
			if err != nil || !regexp.MustCompile(`\b`+m[1]+`\b`).Match(text) {
				t.Errorf("%s places %s in %s, which does not have it (%v)", g.name, m[1], m[2], err)
			}
		}
	}
}

func TestSiteHasEveryGuide(t *testing.T) {
	t.Chdir("../..")
	config, err := os.ReadFile("site/hugo.toml")
	if err != nil {
		t.Fatal(err)
	}
	_, groups, _ := strings.Cut(string(config), "[[params.groups]]")
	for _, g := range guides(t) {
		if g.name != "AGENTS.md" && !strings.Contains(groups, `"`+g.name+`"`) {
			t.Errorf("%s is in no group of site/hugo.toml: add it", g.name)
		}
	}
}

func TestActionsFacts(t *testing.T) {
	t.Chdir("../..")
	text, err := os.ReadFile("docs/ACTIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	g := guide{"docs/ACTIONS.md", string(text)}
	bodies := g.blocks("json")
	if len(bodies) != 1 {
		t.Fatalf("%d JSON blocks: want the body of a request", len(bodies))
	}
	dec := json.NewDecoder(strings.NewReader(bodies[0]))
	dec.DisallowUnknownFields()
	var facts action.Facts
	if err := dec.Decode(&facts); err != nil {
		t.Fatal(err)
	}
	got, err := facts.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if err := json.Compact(&want, []byte(bodies[0])); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.String(), string(got)); diff != "" {
		t.Errorf("the documented body differs from the sent one (-documented +sent):\n%s", diff)
	}
	for _, entry := range facts.Environ() {
		if name, _, _ := strings.Cut(entry, "="); !strings.Contains(g.text, "| `"+name+"` |") {
			t.Errorf("docs/ACTIONS.md does not document %s", name)
		}
	}
}
