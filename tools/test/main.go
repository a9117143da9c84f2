// Command test runs Pawl's tests against real servers. It first builds missing servers into pawl/bin in the
// user's cache folder, where `go test ./...` finds them:
//
//	go run ./tools/test [-ci] [-fuzz 10s] [go test flags] [packages]
//	go run ./tools/test -lint | -build | -nightly [-scale 0.01]
//
// The constant usage documents the flags. -ci selects the mutants that recent changes affect: since the
// last tag, since the branch left main, or else within the last day.
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

// If Java, Node, Python or apt-get is missing, build skips the tools that need it, except in CI.
func build(ctx context.Context, root string, o options) error {
	var need []toolcache.Tool
	if !o.lint {
		need = append(need, toolcache.MinIO, toolcache.VersityGW)
	}
	if !o.lint && !o.isQuick() {
		need = append(need, toolcache.ElasticMQ, toolcache.DynamoDBLocal, toolcache.Kinesalite, toolcache.KinesisLocal, toolcache.Chromium, toolcache.Axe, toolcache.AWSTools, toolcache.Schemathesis)
	}
	if o.lint || o.ci {
		need = append(need, toolcache.GolangCI)
	}
	for _, tool := range need {
		if _, err := tool.Build(ctx, root, os.Stdout); !mayLack(err) {
			return err
		}
	}
	if o.lint {
		return nil
	}
	if !o.isQuick() {
		if err := toolcache.BuildPrometheus(ctx, os.Stdout); !mayLack(err) {
			return err
		}
	}
	return toolcache.BuildPostgres(ctx, root, os.Stdout)
}

// mayLack reports whether the tests can run after the error of a build, which may be nil.
func mayLack(err error) bool {
	if err == nil {
		return true
	}
	excused := toolcache.IsMissingRuntime(err) && os.Getenv("CI") == ""
	if excused {
		fmt.Printf("skipped: tests that need %v\n", err)
	}
	return excused
}

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
