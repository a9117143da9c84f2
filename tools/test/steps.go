package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlhq/pawl/internal/toolcache"
)

type step struct {
	name   string
	budget string // of work, if it varies
	run    func(ctx context.Context) error
}

func (s *scope) steps(o options) []step {
	var all []step
	if o.lint || o.ci {
		all = lintSteps(s.root)
	}
	if o.lint {
		return all
	}
	vet := []string{"vet"}
	if o.ci {
		vet = append(vet, "-race") // golangci-lint already vets the build without -race
	}
	all = append(all, s.command("go vet", append(vet, o.packages...)))
	all = append(all, s.testSteps(o)...)
	if o.fuzz > 0 {
		all = append(all, step{"go test -fuzz", fmt.Sprintf("%d × %v", len(s.targets), o.fuzz), func(ctx context.Context) error { return fuzz(ctx, s.root, s.targets, o.fuzz) }})
	}
	return all
}

const browserDir = "cmd/pawl/demo/browser"

const (
	lockPackage    = "github.com/pawlhq/pawl/lock"
	archivePackage = "github.com/pawlhq/pawl/archive"
	auditPackage   = "github.com/pawlhq/pawl/audit"
)

// reducedPackages run fewer repetitions of reducedTests under the race detector. See their
// played_race_test.go.
var reducedPackages = []string{lockPackage, archivePackage, auditPackage, "github.com/pawlhq/pawl"}

const reducedTests = "^Test(Worlds|BrakeInSimulations|KilledAuditResumes|SoleUserWaitsLittle|SickWorker|AllSick|AuditBesideTraffic|RowsOfNewerPawlVersion)$"

var singleThreaded = []string{mutantsPackage, "github.com/pawlhq/pawl/files/internal/world", "github.com/pawlhq/pawl/internal/housetest"}

// Packages of a single thread run without the race detector, because it would make them ten times as slow.
func (s *scope) testSteps(o options) []step {
	var watched, worlds, mutants []string
	for _, p := range slowestFirst(s.packages) {
		switch {
		case p == mutantsPackage && s.mutants != nil:
			mutants = append(mutants, p)
		case o.ci && (strings.HasPrefix(p+"/", "github.com/pawlhq/pawl/proof/sim/") || slices.Contains(singleThreaded, p)):
			worlds = append(worlds, p)
		default:
			watched = append(watched, p)
		}
	}
	var all []step
	add := func(name string, packages []string, args ...string) {
		if len(packages) > 0 {
			all = append(all, s.test(name, s.root, slices.Concat(packages, args)))
		}
	}
	switch {
	case o.isQuick():
		add("go test -short", watched, slices.Concat([]string{"-short"}, parallelism(), o.args)...)
	case !o.ci:
		add("go test", watched, append(parallelism(), o.args...)...)
	default:
		add("go test -race", watched, slices.Concat([]string{"-race"}, parallelism(), o.args)...)
		add("go test, packages of a single thread", worlds, o.args...)
		if slices.Contains(watched, lockPackage) && !o.selectsTests() {
			add("go test, reduced packages without -race", reducedPackages, append([]string{"-run", reducedTests}, o.args...)...)
		}
	}
	if !o.isQuick() && slices.Contains(s.packages, "github.com/pawlhq/pawl/cmd/pawl/demo") {
		all = append(all, s.test("go test, in a browser", filepath.Join(s.root, browserDir), append([]string{"."}, o.args...)))
	}
	which := []string{"-only", strings.Join(s.mutants, ",")}
	if len(s.mutants) == 0 {
		which = []string{"-skip", "^TestMutants$"}
	}
	add("go test, mutants", mutants, append(which, o.args...)...)
	return all
}

// The slowest tests mostly wait for leases, processes and servers.
func parallelism() []string {
	n := strconv.Itoa(2 * runtime.NumCPU())
	return []string{"-p", n, "-parallel", n}
}

// The slowest packages start first, so that they do not run alone at the end.
var slowest = []string{"cmd/pawl/root", "proof/e2e", "deploy", "cmd/pawl/demo", "lock", "store/sqlite", "store/postgres"}

func slowestFirst(packages []string) []string {
	var first, others []string
	for _, p := range packages {
		if slices.Contains(slowest, strings.TrimPrefix(p, "github.com/pawlhq/pawl/")) {
			first = append(first, p)
		} else {
			others = append(others, p)
		}
	}
	return append(first, others...)
}

// On a slow machine, the tests of the mutants exceed the default of ten minutes.
const packageTimeout = "40m"

func (s *scope) command(name string, args []string) step {
	return step{name, "", func(ctx context.Context) error { return command(ctx, s.root, "go", args...) }}
}

func (s *scope) test(name, dir string, args []string) step {
	return step{name, "", func(ctx context.Context) error {
		var said bytes.Buffer
		err := commandTo(ctx, io.MultiWriter(os.Stdout, &said), dir, "go", append([]string{"test", "-vet=off", "-timeout", packageTimeout}, args...)...)
		s.failures = append(s.failures, failuresIn(said.String())...)
		return err
	}}
}

func lintSteps(root string) []step {
	all := []step{{"gofmt", "", func(ctx context.Context) error { return format(ctx, root) }}}
	for _, module := range []string{".", "bench", browserDir} {
		dir := filepath.Join(root, module)
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
			continue
		}
		all = append(all, lint("golangci-lint "+module, dir, root, toolcache.GolangCI, "run", "--config", filepath.Join(root, ".golangci.yml"), "./..."))
	}
	return all
}

func lint(name, dir, root string, tool toolcache.Tool, args ...string) step {
	return step{name, "", func(ctx context.Context) error {
		bin, err := tool.Path(root)
		if err != nil {
			return err
		}
		return command(ctx, dir, bin, args...)
	}}
}

func command(ctx context.Context, dir, name string, args ...string) error {
	return commandTo(ctx, os.Stdout, dir, name, args...)
}

func commandTo(ctx context.Context, out io.Writer, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, os.Stderr
	// Interrupted tests stop their servers.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 15 * time.Second
	caches := filepath.Dir(toolcache.Dir())
	cmd.Env = append(os.Environ(), "PAWL_TEST_REQUIRE=1",
		"GOLANGCI_LINT_CACHE="+filepath.Join(caches, "golangci-lint"))
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", filepath.Base(name), strings.Join(args, " "), err)
	}
	return nil
}

func format(ctx context.Context, root string) error {
	goroot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("find the Go installation: %w", err)
	}
	gofmt := filepath.Join(strings.TrimSpace(string(goroot)), "bin", "gofmt")
	if _, err := os.Stat(gofmt); err != nil {
		gofmt = "gofmt" // the system has it in another package
	}
	cmd := exec.CommandContext(ctx, gofmt, "-l", ".")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("run gofmt: %w", err)
	}
	if len(out) > 0 {
		return fmt.Errorf("run `gofmt -w` on:\n%s", out)
	}
	return nil
}

// The race detector needs a C compiler.
func needCompiler(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "go", "env", "CGO_ENABLED", "CC").Output()
	if err != nil {
		return fmt.Errorf("find the C compiler: %w", err)
	}
	// go env also reports CGO_ENABLED=0 if it finds no compiler.
	enabled, cc, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	cc, _, _ = strings.Cut(cc, " ")
	if _, err := exec.LookPath(cc); err != nil || enabled != "1" {
		return errors.New("-race needs a C compiler: install gcc (Debian: apt-get install gcc libc6-dev), or unset CGO_ENABLED, or remove -ci")
	}
	return nil
}
