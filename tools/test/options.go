package main

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

const usage = `usage: go run ./tools/test [-ci] [-fuzz 10s] [go test flags] [packages]
       go run ./tools/test -lint | -build | -nightly [-scale 0.01]

Builds MinIO and versitygw once, vets, and runs all tests except long ones and those that need
Java, Node, Python, Terraform, Prometheus or a browser. It lists the skipped tests at the end. It skips nothing
if packages or -run are given.
  -ci          run all checks for a merge: gofmt, staticcheck's checks, golangci-lint, the race detector (except
               for simulated worlds and most repetitions of other single-threaded tests), the mutants of the
               changed code, and four fuzz targets for 10 seconds each. Missing programs are an error
  -fuzz 10s    also fuzz each target of the packages for this long, one at a time
  -lint        only check formatting and run golangci-lint
  -build       only build the servers and tools
  -nightly     run millions of worlds, all mutants and a thousand kills, and fuzz each target for a minute
  -scale 0.01  multiply the budgets of -nightly by this factor
Everything else is passed to go test.
`

type options struct {
	ci, lint, build bool
	fuzz            time.Duration // per target; 0 for none
	nightly         bool
	scale           float64  // of the nightly budgets
	packages        []string // at least one
	named           bool     // on the command line
	args            []string // for go test
}

func parse(args []string) options {
	o := options{scale: 1}
	switches := map[string]*bool{"ci": &o.ci, "lint": &o.lint, "build": &o.build, "nightly": &o.nightly}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "-args" || arg == "--args" { // the rest belongs to the tests
			o.args = append(o.args, args[i:]...)
			break
		}
		on := switches[flagName(arg)]
		switch {
		case on != nil && !strings.Contains(arg, "="):
			*on = true
		case value(args[i:], "fuzz", time.ParseDuration, &o.fuzz), value(args[i:], "scale", parseScale, &o.scale):
			i++
		case isPackage(arg):
			o.packages = append(o.packages, arg)
		default:
			o.args = append(o.args, arg)
		}
	}
	if o.ci && o.fuzz == 0 {
		o.fuzz = 10 * time.Second
	}
	o.named = len(o.packages) > 0
	if !o.named {
		o.packages = []string{"./..."}
	}
	return o
}

// A flag with an invalid value is passed to go test.
func value[T time.Duration | float64](args []string, name string, read func(string) (T, error), to *T) bool {
	if len(args) < 2 || flagName(args[0]) != name || strings.Contains(args[0], "=") {
		return false
	}
	v, err := read(args[1])
	if err != nil || v <= 0 {
		return false
	}
	*to = v
	return true
}

func parseScale(s string) (float64, error) { return strconv.ParseFloat(s, 64) }

func flagName(arg string) string {
	name, ok := strings.CutPrefix(arg, "-")
	if !ok {
		return ""
	}
	name, _, _ = strings.Cut(strings.TrimPrefix(name, "-"), "=")
	return name
}

// A quick run skips long tests, and tests that need Java, Node or Python.
func (o options) isQuick() bool {
	return !o.ci && !o.lint && !o.build && !o.nightly && !o.named && !o.selectsTests()
}

func (o options) selectsTests() bool {
	return slices.ContainsFunc(o.args, func(a string) bool { return flagName(a) == "run" })
}

func isPackage(arg string) bool {
	return arg == "." || strings.HasPrefix(arg, "./") || strings.HasPrefix(arg, "github.com/pawlhq/pawl")
}
