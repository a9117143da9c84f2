package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

type target struct {
	pkg  string
	name string
}

func (t target) dir() string { return strings.TrimPrefix(t.pkg, "github.com/pawlhq/pawl/") }

func (t target) String() string { return t.name + " in " + t.dir() }

// The default is a minute, which would use up the fuzz time.
const minimizeLimit = "100x"

// Each target uses all cores, so they run one at a time.
func fuzz(ctx context.Context, root string, targets []target, each time.Duration) error {
	var failed []error
	for i, t := range targets {
		fmt.Printf("-- %d of %d: %s, for %s\n", i+1, len(targets), t, each)
		if err := t.fuzz(ctx, root, each); err != nil {
			failed = append(failed, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(failed...)
}

func (t target) args(each time.Duration) []string {
	return []string{"test", "-run", "^$", "-fuzz", "^" + t.name + "$", "-fuzztime", each.String(), "-fuzzminimizetime", minimizeLimit, t.pkg}
}

func (t target) fuzz(ctx context.Context, root string, each time.Duration) error {
	var said bytes.Buffer
	err := commandTo(ctx, io.MultiWriter(os.Stdout, &said), root, "go", t.args(each)...)
	if err == nil || isDeadlineRace(said.String()) {
		return nil
	}
	return fmt.Errorf("%s: repeat with: %s", t.name, t.repeat(said.String()))
}

var failingInput = regexp.MustCompile(`Failing input written to testdata/fuzz/(Fuzz\w+/\w+)`)

func (t target) repeat(said string) string {
	run := "^" + t.name + "$"
	if m := failingInput.FindStringSubmatch(said); m != nil {
		run = "^" + strings.Replace(m[1], "/", "$/^", 1) + "$"
	}
	return fmt.Sprintf("go test -run '%s' %s", run, t.pkg)
}

// deadline matches a failure that only reports the end of the fuzz time.
var deadline = regexp.MustCompile(`(?m)^--- FAIL: Fuzz\w+ \([0-9.]+s\)\n    context deadline exceeded$`)

// Go 1.26 may report a failure when -fuzztime ends. https://go.dev/issue/75804
func isDeadlineRace(said string) bool {
	return deadline.MatchString(said) && !failingInput.MatchString(said)
}

const testFiles = `{{range .TestGoFiles}}{{$.ImportPath}}{{"\t"}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}` +
	`{{range .XTestGoFiles}}{{$.ImportPath}}{{"\t"}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}`

var fuzzTest = regexp.MustCompile(`(?m)^func (Fuzz\w*)\(\w+ \*testing\.F\)`)

// Packages without a fuzz target are probably misspelled.
func fuzzTargets(ctx context.Context, root string, packages []string) ([]target, error) {
	targets, err := findTests(ctx, root, packages, fuzzTest)
	if err == nil && len(targets) == 0 {
		err = fmt.Errorf("no fuzz target in %s", strings.Join(packages, " "))
	}
	return targets, err
}

// `go test -list` would link the tests of every package, so findTests parses the source.
func findTests(ctx context.Context, root string, packages []string, declared *regexp.Regexp) ([]target, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-f", testFiles}, packages...)...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the test files: %w", err)
	}
	var targets []target
	for line := range strings.Lines(string(out)) {
		pkg, name, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if !ok {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("find tests: %w", err)
		}
		for _, m := range declared.FindAllSubmatch(text, -1) {
			targets = append(targets, target{pkg, string(m[1])})
		}
	}
	return targets, nil
}
