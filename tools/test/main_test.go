package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/proof/mutants"
)

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want options
	}{
		{nil, options{scale: 1, packages: []string{"./..."}}},
		{[]string{"-build"}, options{scale: 1, build: true, packages: []string{"./..."}}},
		{[]string{"-ci"}, options{scale: 1, ci: true, fuzz: 10 * time.Second, packages: []string{"./..."}}},
		{[]string{"--nightly", "-scale", "0.5"}, options{nightly: true, scale: 0.5, packages: []string{"./..."}}},
		{
			[]string{"-lint", "-race", "-timeout", "20m", "./..."},
			options{scale: 1, lint: true, packages: []string{"./..."}, named: true, args: []string{"-race", "-timeout", "20m"}},
		},
		{
			[]string{"-fuzz", "30s", "-ci", "./event"},
			options{scale: 1, ci: true, fuzz: 30 * time.Second, packages: []string{"./event"}, named: true},
		},
		{
			[]string{"-fuzz", "FuzzDetect", "-fuzztime", "1m", "./event"}, // a flag of go test
			options{scale: 1, packages: []string{"./event"}, named: true, args: []string{"-fuzz", "FuzzDetect", "-fuzztime", "1m"}},
		},
		{
			[]string{"-run", ".*X", "github.com/pawlhq/pawl/engine", "-args", "-lint", "./x"},
			options{scale: 1, packages: []string{"github.com/pawlhq/pawl/engine"}, named: true, args: []string{"-run", ".*X", "-args", "-lint", "./x"}},
		},
	} {
		got := parse(tc.args)
		if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(options{})); diff != "" {
			t.Errorf("parse(%q) (-want +got):\n%s", tc.args, diff)
		}
	}
}

func TestQuick(t *testing.T) {
	for _, tc := range []struct {
		args string
		want bool
	}{
		{"", true}, {"-v -count=1", true}, {"-fuzz 10s", true},
		{"-ci", false}, {"-lint", false}, {"-build", false}, {"-nightly", false}, {"./...", false}, {"-run=X", false}, {"-run X", false},
	} {
		if got := parse(strings.Fields(tc.args)).isQuick(); got != tc.want {
			t.Errorf("quick with %q: %v", tc.args, got)
		}
	}
}

func TestLeftOutTestsAreListed(t *testing.T) {
	long, err := findTests(t.Context(), "../..", []string{"./proof/mutants", "./proof/e2e"}, longTest)
	if err != nil {
		t.Fatal(err)
	}
	got := (&scope{long: long}).leftOut()
	for _, want := range []string{"go run ./tools/test -ci", "TestExplorer", "TestMutants", "TestCounter", "TestManyWorkers"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in: %s", want, got)
		}
	}
}

func TestGoTestSteps(t *testing.T) {
	s := &scope{packages: []string{lockPackage, archivePackage, "github.com/pawlhq/pawl/proof/sim", mutantsPackage, "github.com/pawlhq/pawl/cmd/pawl/demo"}}
	some := &scope{packages: s.packages, mutants: []string{"a", "b"}}
	for _, tc := range []struct {
		name  string
		scope *scope
		opts  options
		want  []string
	}{
		{"plain", s, options{args: []string{"-v"}}, []string{"go test -short"}},
		{"packages", s, options{named: true}, []string{"go test", "go test, in a browser"}},
		{"ci", some, options{ci: true}, []string{"go test -race", "go test, packages of a single thread", "go test, reduced packages without -race", "go test, in a browser", "go test, mutants"}},
		{"ci, one test", some, options{ci: true, args: []string{"-run=X"}}, []string{"go test -race", "go test, packages of a single thread", "go test, in a browser", "go test, mutants"}},
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
		{"github.com/pawlhq/pawl/event", "FuzzDetect"},               // in an external test package
		{"github.com/pawlhq/pawl/action/imageaction", "FuzzConvert"}, // in the package itself
	} {
		if !slices.Contains(targets, want) {
			t.Errorf("%v is not among %v", want, targets)
		}
	}
	if _, err := fuzzTargets(t.Context(), "../..", []string{"./internal/toolcache"}); err == nil {
		t.Error("want an error for a package without targets")
	}
}

func TestReducedPackagesRunAgainWithoutRace(t *testing.T) {
	t.Chdir("../..")
	var found []string
	for _, pattern := range []string{"played_race_test.go", "*/played_race_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			found = append(found, path.Join("github.com/pawlhq/pawl", filepath.Dir(f)))
		}
	}
	want := slices.Sorted(slices.Values(reducedPackages))
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("packages with a file played_race_test.go (-want +got):\n%s", diff)
	}
}

func TestFuzzOutput(t *testing.T) {
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
			if got := isDeadlineRace(tc.said); got != tc.race {
				t.Errorf("a race: %v, want %v", got, tc.race)
			}
		})
	}
}

func TestNightlySteps(t *testing.T) {
	known, err := mutants.Read(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	s := &scope{root: "../..", known: known, targets: []target{{"github.com/pawlhq/pawl/event", "FuzzDetect"}}}
	for scale, want := range map[float64][]string{
		1: {
			"worlds: 10000000 worlds", "lock worlds: 1000000 worlds", "archive worlds: 1000000 worlds", "files worlds: 1000000 worlds", "model checker: all scopes", "mutants: all",
			"kills: 10 × 50 kills, 10 stops", "kills with queues: 3 × 50 kills, 10 stops", "rolling upgrade: 50 kills, 10 stops", "counter: 2000 updates", "loads: 500 files, 200 kills, 50 crashes", "files: 3000 uploads, 200 kills, 20 stops", "begun files: 100000 uploads, 200 kills", "requests to the files API: 2000 for each operation", "archive: 200000 records, 50 kills, 10 stops", "many workers: 3000 objects, 50 kills of two", "published traffic: one part in 1", "statistics: 10000000 notifications", "sweepers: 100000 rows", "alerts: durations divided by 1", "pages of the dashboard: 1000000 rows", "flood: 10000 connections", "FuzzDetect in event: 1m0s",
		},
		0.0000001: {
			"worlds: 1 worlds", "lock worlds: 1 worlds", "archive worlds: 1 worlds", "files worlds: 1 worlds", "model checker: small scopes", fmt.Sprintf("mutants: 1 of %d", len(known)),
			"kills: 1 × 20 kills, 5 stops", "kills with queues: 1 × 20 kills, 5 stops", "rolling upgrade: 20 kills, 5 stops", "counter: 1 updates", "loads: 200 files, 20 kills, 4 crashes", "files: 72 uploads, 8 kills, 2 stops", "begun files: 2000 uploads, 10 kills", "requests to the files API: 10 for each operation", "archive: 20000 records, 5 kills, 1 stops", "many workers: 300 objects, 5 kills of two", "published traffic: one part in 50", "statistics: 100000 notifications", "sweepers: 10000 rows", "alerts: durations divided by 240", "pages of the dashboard: 10000 rows", "flood: 100 connections", "FuzzDetect in event: 1s",
		},
	} {
		steps := (&nightly{scope: s, scale: scale}).steps(t.Context())
		var got []string
		for _, step := range steps {
			got = append(got, step.name+": "+step.budget)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("scale %v (-want +got):\n%s", scale, diff)
		}
	}
	if got := shell(s.targets[0].args(time.Minute)); got != "test -run '^$' -fuzz '^FuzzDetect$' -fuzztime 1m0s -fuzzminimizetime 100x github.com/pawlhq/pawl/event" {
		t.Error(got)
	}
}

func TestFailedStepDoesNotStopOthers(t *testing.T) {
	ran := 0
	fails := step{"fails", "", func(context.Context) error { ran++; return errors.New("no") }}
	works := step{"works", "", func(context.Context) error { ran++; return nil }}
	if code := runSteps(t.Context(), []step{fails, works}); code != 1 || ran != 2 {
		t.Errorf("exit code %d, %d steps", code, ran)
	}
	if code := runSteps(t.Context(), []step{works}); code != 0 {
		t.Errorf("exit code %d without a failure", code)
	}
}
