package main

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

const usage = `usage: go run ./tools/test [-lint] [-race] [-fuzz 10s] [-changed] [-build] [go test flags] [packages]
       go run ./tools/test -nightly [-scale 0.01]

Builds MinIO and versitygw once, then vets and tests ./... or the packages.
  -lint        also check formatting and run staticcheck and golangci-lint
  -race        with the race detector, except for simulated worlds and most repetitions of other tests of one thread
  -fuzz 10s    also fuzz each target of the packages for so long, one after the other
  -changed     leave out mutants that have nothing to do with what has changed, and all but four fuzz targets
  -build       build what is needed, and nothing else
  -nightly     play millions of worlds, all mutants, a thousand kills, and fuzz each target for a minute
  -scale 0.01  with so much of a night's budgets
Everything else is passed to go test.
`

// options are what the command line asked for.
type options struct {
	lint, build, race bool
	changed           bool          // leave out mutants that no change concerns, and most fuzz targets
	fuzz              time.Duration // each target; 0: none
	nightly           bool
	scale             float64  // of a night's budgets
	packages          []string // at least one
	args              []string // for go test
}

func parse(args []string) options {
	o := options{scale: 1}
	switches := map[string]*bool{"lint": &o.lint, "build": &o.build, "race": &o.race, "changed": &o.changed, "nightly": &o.nightly}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "-args" || arg == "--args" { // the rest is the tests' own
			o.args = append(o.args, args[i:]...)
			break
		}
		on := switches[flagName(arg)]
		switch {
		case on != nil && !strings.Contains(arg, "=") || arg == "-race=true":
			*on = true
		case value(args[i:], "fuzz", time.ParseDuration, &o.fuzz), value(args[i:], "scale", parseScale, &o.scale):
			i++
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

// value reads a flag and the word after it, which must be more than zero. With
// anything else behind it the flag is go test's own.
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

// flagName returns what a flag is called, or "".
func flagName(arg string) string {
	name, ok := strings.CutPrefix(arg, "-")
	if !ok {
		return ""
	}
	name, _, _ = strings.Cut(strings.TrimPrefix(name, "-"), "=")
	return name
}

// narrow reports that the arguments select tests.
func (o options) narrow() bool {
	return slices.ContainsFunc(o.args, func(a string) bool { return flagName(a) == "run" })
}

func isPackage(arg string) bool {
	return arg == "." || strings.HasPrefix(arg, "./") || strings.HasPrefix(arg, "github.com/pawlhq/pawl")
}
