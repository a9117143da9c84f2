package main

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want options
	}{
		{nil, options{packages: []string{"./..."}}},
		{[]string{"-build"}, options{build: true, packages: []string{"./..."}}},
		{
			[]string{"-lint", "-race", "-timeout", "20m", "./..."},
			options{lint: true, race: true, packages: []string{"./..."}, args: []string{"-timeout", "20m"}},
		},
		{
			[]string{"-fuzz", "30s", "-race", "./event"},
			options{race: true, fuzz: 30 * time.Second, packages: []string{"./event"}},
		},
		{
			[]string{"-fuzz", "FuzzDetect", "-fuzztime", "1m", "./event"}, // go test's own
			options{packages: []string{"./event"}, args: []string{"-fuzz", "FuzzDetect", "-fuzztime", "1m"}},
		},
		{
			[]string{"-run", ".*X", "github.com/pawlhq/pawl/engine", "-args", "-lint", "./x"},
			options{packages: []string{"github.com/pawlhq/pawl/engine"}, args: []string{"-run", ".*X", "-args", "-lint", "./x"}},
		},
	} {
		got := parse(tc.args)
		if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(options{})); diff != "" {
			t.Errorf("parse(%q) (-want +got):\n%s", tc.args, diff)
		}
	}
}

// Each package is tested once. Of package lock the worlds alone are played again.
func TestCallsOfGoTest(t *testing.T) {
	s := &scope{packages: []string{lockPackage, "github.com/pawlhq/pawl/internal/sim", mutantsPackage}}
	some := &scope{packages: s.packages, mutants: []string{"a", "b"}}
	for _, tc := range []struct {
		name  string
		scope *scope
		opts  options
		want  []string
	}{
		{"plain", s, options{args: []string{"-v"}}, []string{"go test"}},
		{"race", s, options{race: true}, []string{"go test -race", "go test, the worlds", "go test, lock's worlds"}},
		{"race, one test", s, options{race: true, args: []string{"-run=X"}}, []string{"go test -race", "go test, the worlds"}},
		{"changed", some, options{}, []string{"go test", "go test, the mutants"}},
		{"race, changed", some, options{race: true}, []string{"go test -race", "go test, the worlds", "go test, lock's worlds", "go test, the mutants"}},
	} {
		var got []string
		for _, step := range tc.scope.testSteps(tc.opts) {
			got = append(got, step.name)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func TestFuzzTargetsAreFound(t *testing.T) {
	targets, err := fuzzTargets(t.Context(), "../..", []string{"./event", "./engine", "./action/imageaction"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []target{
		{"github.com/pawlhq/pawl/event", "FuzzDetect"},               // beside the package
		{"github.com/pawlhq/pawl/action/imageaction", "FuzzConvert"}, // in it
	} {
		if !slices.Contains(targets, want) {
			t.Errorf("%v is not among %v", want, targets)
		}
	}
	if _, err := fuzzTargets(t.Context(), "../..", []string{"./internal/toolcache"}); err == nil {
		t.Error("no targets are no error: a typing error would pass for success")
	}
}

// What go test says of a finding, and of the end of its time.
func TestWhatAFuzzerFound(t *testing.T) {
	detect := target{"github.com/pawlhq/pawl/event", "FuzzDetect"}
	for _, tc := range []struct {
		name, said, repeat string
		race               bool
	}{
		{
			"a finding", "--- FAIL: FuzzDetect (0.04s)\n    --- FAIL: FuzzDetect (0.00s)\n        fuzz_test.go:29: bad\n    \n" +
				"    Failing input written to testdata/fuzz/FuzzDetect/19313ca0391795fc\n    To re-run:\n    go test -run=FuzzDetect/19313ca0391795fc\nFAIL\n",
			"go test -run '^FuzzDetect$/^19313ca0391795fc$' github.com/pawlhq/pawl/event", false,
		},
		{
			"a seed", "failure while testing seed corpus entry: FuzzDetect/seed#3\n--- FAIL: FuzzDetect (0.04s)\n",
			"go test -run '^FuzzDetect$' github.com/pawlhq/pawl/event", false,
		},
		{
			"the deadline", "fuzz: elapsed: 30s, execs: 7 (0/sec)\n--- FAIL: FuzzDetect (30.11s)\n    context deadline exceeded\nFAIL\n",
			"go test -run '^FuzzDetect$' github.com/pawlhq/pawl/event", true,
		},
		{
			"a target whose own deadline passes", "--- FAIL: FuzzDetect (0.04s)\n    --- FAIL: FuzzDetect (0.00s)\n        fuzz_test.go:29: context deadline exceeded\n",
			"go test -run '^FuzzDetect$' github.com/pawlhq/pawl/event", false,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := detect.repeat(tc.said); got != tc.repeat {
				t.Errorf("repeat: %s, want %s", got, tc.repeat)
			}
			if got := endedInARace(tc.said); got != tc.race {
				t.Errorf("a race: %v, want %v", got, tc.race)
			}
		})
	}
}
