// Command test runs Pawl's tests against real servers, and builds the servers
// first if they are missing:
//
//	go run ./tools/test [-ci] [-fuzz 10s] [go test flags] [packages]
//	go run ./tools/test -lint | -build | -nightly [-scale 0.01]
//
// It vets and tests ./... with go test -short, which leaves out what takes long or needs
// Java, Node, Python, Terraform or a browser, and says so at the end. Of packages that are
// named, and of tests that -run selects, it leaves out nothing. With -fuzz and a duration it
// also fuzzes every target of the packages for so long. With -lint it only checks formatting
// and runs golangci-lint. With -build it only builds servers and tools.
// Everything else is passed to go test:
//
//	go run ./tools/test -race -count=1 ./engine/...
//
// With -ci it does what must pass before a change is merged. It lints, and the race detector
// watches, except over simulated worlds and most repetitions of other tests, which have one
// thread each and are many. It fuzzes four targets, and plays the mutants that have to do
// with what has changed since the last tag, or since the branch left main, or, on main
// without a tag, within a day. It prints which it took and why, and which it left out. No test may
// be skipped because something is not installed.
//
// At the end it prints the first lines of each failed test again, unless go test has -v.
//
// With -nightly it plays all of them, and longer: see [night.steps].
//
// The servers are built once, from the modules beside this folder, into
// pawl/bin in the user's cache folder. `go test ./...` alone finds them there.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pawlhq/pawl/internal/toolcache"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string) int {
	if slices.ContainsFunc(args, func(a string) bool { return a == "-h" || a == "-help" || a == "--help" }) {
		fmt.Print(usage)
		return 0
	}
	code, err := parse(args).run(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "tools/test:", err)
	}
	return code
}

// run does what was asked for, and returns the exit code.
func (o options) run(ctx context.Context) (int, error) {
	root, err := toolcache.Root()
	if err == nil {
		err = os.Chdir(root)
	}
	if err == nil && o.ci {
		err = errors.Join(os.Setenv("CI", "true"), needCompiler(ctx))
	}
	if err == nil {
		err = build(ctx, root, o)
	}
	if err != nil || o.build {
		return exitCode(err), err
	}
	s, err := o.findScope(ctx, root)
	if err != nil {
		return 1, err
	}
	steps := s.steps(o)
	if o.nightly {
		steps = (&nightly{scope: s, scale: o.scale, seed: uint64(time.Now().Unix())}).steps(ctx)
	}
	code := runSteps(ctx, steps)
	if o.isQuick() {
		fmt.Println(s.leftOut())
	}
	printFailures(os.Stdout, s.failures)
	return code, nil
}

func exitCode(err error) int {
	if err != nil {
		return 1
	}
	return 0
}

// build makes the servers and tools that the run needs. A machine
// without Java, Node or Python does without the servers that need it, but CI may not.
func build(ctx context.Context, root string, o options) error {
	var need []toolcache.Tool
	if !o.lint {
		need = append(need, toolcache.MinIO, toolcache.VersityGW)
	}
	if !o.lint && !o.isQuick() {
		need = append(need, toolcache.ElasticMQ, toolcache.DynamoDBLocal, toolcache.Kinesalite, toolcache.KinesisLocal, toolcache.Chromium, toolcache.AWSTools, toolcache.Schemathesis)
	}
	if o.lint || o.ci {
		need = append(need, toolcache.GolangCI)
	}
	for _, tool := range need {
		_, err := tool.Build(ctx, root, os.Stdout)
		switch {
		case toolcache.IsMissingRuntime(err) && os.Getenv("CI") == "":
			fmt.Printf("left out: tests on %v\n", err)
		case err != nil:
			return err
		}
	}
	if o.lint {
		return nil
	}
	return toolcache.BuildPostgres(ctx, root, os.Stdout)
}

// runSteps runs every step, whether or not the one before failed, and returns
// the exit code.
func runSteps(ctx context.Context, steps []step) int {
	code := 0
	var summary strings.Builder
	for _, s := range steps {
		fmt.Printf("== %s\n", s.name)
		start := time.Now()
		err := s.run(ctx)
		verdict := "ok"
		if err != nil {
			verdict, code = "FAILED: "+err.Error(), 1
		}
		fmt.Fprintf(&summary, "%-34s %-24s %8s  %s\n", s.name, s.budget, time.Since(start).Round(time.Second), verdict)
		if ctx.Err() != nil {
			break
		}
	}
	fmt.Printf("== summary\n%s", summary.String())
	return code
}
