package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl/internal/toolcache"
)

// step is one check.
type step struct {
	name string
	run  func(ctx context.Context) error
}

func steps(root string, o options) []step {
	var all []step
	if o.lint {
		all = lintSteps(root)
	}
	vet := append([]string{"vet"}, o.packages...)
	all = append(all, step{"go vet", func(ctx context.Context) error { return command(ctx, root, "go", vet...) }})
	all = append(all, testSteps(root, o)...)
	if o.fuzz > 0 {
		all = append(all, step{"go test -fuzz", func(ctx context.Context) error { return fuzz(ctx, root, o.packages, o.fuzz) }})
	}
	return all
}

func testSteps(root string, o options) []step {
	if !o.race {
		return []step{{"go test", func(ctx context.Context) error { return test(ctx, root, o.packages, o.args) }}}
	}
	watched := append([]string{"-race"}, o.args...)
	return []step{
		{"go test -race", func(ctx context.Context) error {
			packages, _, err := split(ctx, root, o.packages)
			return errors.Join(err, test(ctx, root, packages, watched))
		}},
		{"go test, the worlds", func(ctx context.Context) error {
			_, worlds, err := split(ctx, root, o.packages)
			return errors.Join(err, test(ctx, root, worlds, o.args))
		}},
	}
}

// patience is what a package gets unless the arguments say otherwise. On a slow
// machine the mutants may take longer than go test's ten minutes.
const patience = "40m"

// test runs the tests of packages, if there are any.
func test(ctx context.Context, root string, packages, args []string) error {
	if len(packages) == 0 {
		return nil
	}
	return command(ctx, root, "go", slices.Concat([]string{"test", "-timeout", patience}, packages, args)...)
}

// split tells the packages of simulated worlds from the others. The race
// detector would make them ten times as slow, and they have one thread each.
// Package lock is both.
func split(ctx context.Context, root string, packages []string) (others, worlds []string, err error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list"}, packages...)...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("listing packages: %w", err)
	}
	for _, p := range strings.Fields(string(out)) {
		sim := strings.HasPrefix(p+"/", "github.com/pawlhq/pawl/internal/sim/")
		if sim || p == "github.com/pawlhq/pawl/lock" { // which plays few of its worlds under the detector
			worlds = append(worlds, p)
		}
		if !sim {
			others = append(others, p)
		}
	}
	return others, worlds, nil
}

func lintSteps(root string) []step {
	all := []step{{"gofmt", func(ctx context.Context) error { return format(ctx, root) }}}
	for _, module := range []string{".", "bench"} {
		dir := filepath.Join(root, module)
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
			continue // the benchmarks are a module of their own, where there are any
		}
		all = append(all,
			lint("staticcheck "+module, dir, root, toolcache.Staticcheck, "./..."),
			lint("golangci-lint "+module, dir, root, toolcache.GolangCI, "run", "--config", filepath.Join(root, ".golangci.yml"), "./..."),
		)
	}
	return all
}

func lint(name, dir, root string, tool toolcache.Tool, args ...string) step {
	return step{name, func(ctx context.Context) error {
		bin, err := tool.Path(root)
		if err != nil {
			return err
		}
		return command(ctx, dir, bin, args...)
	}}
}

// command runs a program in dir and shows what it says.
func command(ctx context.Context, dir, name string, args ...string) error {
	return commandTo(ctx, os.Stdout, dir, name, args...)
}

// commandTo runs a program in dir and writes to out what it says.
func commandTo(ctx context.Context, out io.Writer, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, os.Stderr
	// Interrupted and not killed, so that tests end their servers.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 15 * time.Second
	caches := filepath.Dir(toolcache.Dir())
	cmd.Env = append(os.Environ(), "PAWL_TEST_REQUIRE=1",
		"GOLANGCI_LINT_CACHE="+filepath.Join(caches, "golangci-lint"),
		"STATICCHECK_CACHE="+filepath.Join(caches, "staticcheck"))
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", filepath.Base(name), strings.Join(args, " "), err)
	}
	return nil
}

// format fails when a file is not as gofmt would have it.
func format(ctx context.Context, root string) error {
	goroot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("asking go for its folder: %w", err)
	}
	gofmt := filepath.Join(strings.TrimSpace(string(goroot)), "bin", "gofmt")
	if _, err := os.Stat(gofmt); err != nil {
		gofmt = "gofmt" // packaged apart from Go
	}
	cmd := exec.CommandContext(ctx, gofmt, "-l", ".")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("running gofmt: %w", err)
	}
	if len(out) > 0 {
		return fmt.Errorf("run `gofmt -w` on:\n%s", out)
	}
	return nil
}

// needCompiler returns an error if the race detector cannot work here.
func needCompiler(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "go", "env", "CGO_ENABLED", "CC").Output()
	if err != nil {
		return fmt.Errorf("asking go for its C compiler: %w", err)
	}
	// go env says CGO_ENABLED=0 as well if it finds no compiler.
	enabled, cc, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	cc, _, _ = strings.Cut(cc, " ")
	if _, err := exec.LookPath(cc); err != nil || enabled != "1" {
		return errors.New("-race needs a C compiler: install gcc (Debian: apt-get install gcc libc6-dev), or unset CGO_ENABLED, or leave -race out")
	}
	return nil
}
