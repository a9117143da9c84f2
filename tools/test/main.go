// Command test runs Pawl's tests against real servers, and builds the servers
// first if they are missing:
//
//	go run ./tools/test [-lint] [-race] [-fuzz 10s] [-changed] [-build] [go test flags] [packages]
//	go run ./tools/test -nightly [-scale 0.01]
//
// It vets and tests ./... unless packages are named, and skips nothing. With
// -lint it also checks formatting and runs staticcheck and golangci-lint. With
// -race the race detector watches, but not over simulated worlds, which have one
// thread each and are many. With -fuzz and a duration it also fuzzes every
// target of the packages for so long. With -build it only builds what it needs.
// Everything else is passed to go test:
//
//	go run ./tools/test -race -count=1 ./engine/...
//
// The servers are built once, from the modules beside this folder, into
// pawl/bin in the user's cache folder. `go test ./...` alone finds them there.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pawlhq/pawl/internal/toolcache"
)

const usage = `usage: go run ./tools/test [-lint] [-race] [-fuzz 30s] [-build] [go test flags] [packages]

Builds MinIO and versitygw once, then vets and tests ./... or the packages.
  -lint      also check formatting and run staticcheck and golangci-lint
  -race      with the race detector, but for simulated worlds, which have one thread each
  -fuzz 30s  also fuzz each target of the packages for so long, one after the other
  -build     build what is needed, and nothing else
Everything else is passed to go test.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// options are what the command line asked for.
type options struct {
	lint, build, race bool
	changed           bool          // leave out fuzz targets and mutants that no change concerns
	fuzz              time.Duration // each target; 0: none
	packages          []string      // at least one
	args              []string      // for go test
}

// narrow reports that the arguments select tests.
func (o options) narrow() bool {
	return slices.ContainsFunc(o.args, func(a string) bool {
		name, _, _ := strings.Cut(strings.TrimLeft(a, "-"), "=")
		return strings.HasPrefix(a, "-") && (name == "run" || name == "test.run")
	})
}

func parse(args []string) options {
	var o options
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "-args" || arg == "--args" { // the rest is the tests' own
			o.args = append(o.args, args[i:]...)
			break
		}
		switch {
		case arg == "-lint" || arg == "--lint":
			o.lint = true
		case arg == "-build" || arg == "--build":
			o.build = true
		case fuzzing(args[i:], &o.fuzz):
			i++
		case arg == "-changed" || arg == "--changed":
			o.changed = true
		case arg == "-race" || arg == "--race" || arg == "-race=true":
			o.race = true
		case isPackage(arg):
			o.packages = append(o.packages, arg)
		default:
			o.args = append(o.args, arg)
		}
	}
	if len(o.packages) == 0 {
		o.packages = []string{"./..."}
	}
	return o
}

// fuzzing reads -fuzz and a duration. With anything else behind it the flag is
// go test's own.
func fuzzing(args []string, each *time.Duration) bool {
	if len(args) < 2 || args[0] != "-fuzz" && args[0] != "--fuzz" {
		return false
	}
	d, err := time.ParseDuration(args[1])
	if err != nil || d <= 0 {
		return false
	}
	*each = d
	return true
}

func isPackage(arg string) bool {
	return arg == "." || strings.HasPrefix(arg, "./") || strings.HasPrefix(arg, "github.com/pawlhq/pawl")
}

func run(ctx context.Context, args []string) int {
	if slices.ContainsFunc(args, func(a string) bool { return a == "-h" || a == "-help" || a == "--help" }) {
		fmt.Print(usage)
		return 0
	}
	o := parse(args)
	root, err := toolcache.Root()
	if err == nil {
		err = os.Chdir(root)
	}
	if err == nil && o.race {
		err = needCompiler(ctx)
	}
	if err == nil {
		err = build(ctx, root, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tools/test:", err)
		return 1
	}
	if o.build {
		return 0
	}
	s, err := o.look(ctx, root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "tools/test:", err)
		return 1
	}
	return perform(ctx, s.steps(o))
}

// build makes the servers, and the linters if they are asked for.
func build(ctx context.Context, root string, o options) error {
	need := []toolcache.Tool{toolcache.MinIO, toolcache.VersityGW}
	if o.lint {
		need = append(need, toolcache.Staticcheck, toolcache.GolangCI)
	}
	for _, tool := range need {
		if _, err := tool.Build(ctx, root, os.Stdout); err != nil {
			return err
		}
	}
	return nil
}

// perform runs every step, whether or not the one before failed, and returns
// the exit code.
func perform(ctx context.Context, steps []step) int {
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
		fmt.Fprintf(&summary, "%-24s %8s  %s\n", s.name, time.Since(start).Round(time.Second), verdict)
		if ctx.Err() != nil {
			break
		}
	}
	fmt.Printf("== summary\n%s", summary.String())
	return code
}
