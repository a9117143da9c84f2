package simulatecmd

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/internal/simkit"
	"github.com/pawlhq/pawl/proof/sim"
)

func failedReport() *sim.Report {
	violations := []sim.Violation{{Invariant: sim.I6, Detail: "+1h0m0s: it is back"}}
	r := &sim.Report{
		First: 7, Histories: 64, Steps: 640, Elapsed: 2 * time.Second, Violated: map[sim.Invariant]uint64{sim.I6: 1},
		Failure: &sim.Failure{Seed: 9, Violations: violations, Tape: "010203", Choices: 3, Trace: []string{"first", "then"}},
	}
	r.Injected[sim.StepSwap][simkit.Torn] = 5
	return r
}

func TestReportOfFailedSimulation(t *testing.T) {
	var out bytes.Buffer
	a := &app.App{Streams: app.Streams{Out: &out}}
	if f := app.Classify(printSimulation(a, failedReport(), 1000), true); f.Code != app.ExitFound {
		t.Errorf("exit code %d: %v", f.Code, f)
	}
	for _, want := range []string{
		"seeds 7 to 70: 64 worlds, 10 steps each, in 2.0 s, 32 per second\n",
		"\nWorld of seed 9\nI6 violated: the output of a removed object does not return permanently\n  +1h0m0s: it is back\n",
		"pawl simulate --story --seed 9\n", "Shrunk to   3 choices:  pawl simulate --tape 010203\n", "\nfirst\nthen\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, &out)
		}
	}
	torn := slices.IndexFunc(strings.Split(out.String(), "\n"), func(l string) bool {
		return slices.Equal(strings.Fields(l), []string{"torn", "5", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-"})
	})
	if torn < 0 || strings.Contains(out.String(), "Every invariant held") {
		t.Errorf("the report says:\n%s", &out)
	}
}

func TestReportOfFailedSimulationAsJSON(t *testing.T) {
	var out bytes.Buffer
	a := &app.App{Streams: app.Streams{Out: &out}, JSON: true}
	if f := app.Classify(printSimulation(a, failedReport(), 1000), true); f.Code != app.ExitFound {
		t.Errorf("exit code %d: %v", f.Code, f)
	}
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	delete(got, "faults")
	want := map[string]any{
		"first_seed": 7.0, "histories": 64.0, "steps": 640.0, "seconds": 2.0, "setbacks": 0.0, "held": false, "complete": false,
		"violated": map[string]any{"I6": 1.0},
		"failure": map[string]any{
			"seed": 9.0, "tape": "010203", "choices": 3.0, "story": []any{"first", "then"},
			"violations": []any{map[string]any{"invariant": "I6", "what": "+1h0m0s: it is back"}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReportOfFailedWorld(t *testing.T) {
	var out bytes.Buffer
	a := &app.App{Streams: app.Streams{Out: &out}}
	f := failedReport().Failure
	if f := app.Classify(printWorld(a, &worldReport{Violations: f.Violations, Trace: f.Trace}), true); f.Code != app.ExitFound {
		t.Errorf("exit code %d: %v", f.Code, f)
	}
	want := "first\nthen\n\nWorld of the tape\nI6 violated: the output of a removed object does not return permanently\n  +1h0m0s: it is back\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWorldsBar(t *testing.T) {
	var out bytes.Buffer
	bar := worldsBar(&out, 200)
	for _, played := range []int64{64, 200} {
		if err := bar.Set64(played); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"/200", "worlds/"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in %q", want, &out)
		}
	}
}
