package demo

import (
	"reflect"
	"testing"

	"github.com/pawlhq/pawl/proof/rig"
)

func TestPlan(t *testing.T) {
	for seed := range uint64(300) {
		steps := plan(seed)
		checkSteps(t, seed, steps)
		checkHandlings(t, seed, steps)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if !reflect.DeepEqual(plan(7), plan(7)) {
		t.Error("one seed made two plans")
	}
	if reflect.DeepEqual(plan(7), plan(8)) {
		t.Error("two seeds made one plan")
	}
}

func checkSteps(t *testing.T, seed uint64, steps []step) {
	t.Helper()
	there, ever := map[string]bool{}, map[string]bool{}
	overwritten, removed, awaits := 0, 0, 0
	for i, s := range steps {
		if s.awaitsOutput && s.picture == nil {
			awaits++
		}
		if i > 0 && s.at < steps[i-1].at {
			t.Errorf("seed %d: step %d is before the one before", seed, i)
		}
		switch {
		case s.picture == nil && !there[s.key]:
			t.Errorf("seed %d: step %d removes %q, which does not exist", seed, i, s.key)
		case s.picture == nil:
			removed++
		case there[s.key]:
			overwritten++
		}
		there[s.key], ever[s.key] = s.picture != nil, true
	}
	if len(ever) != photographs || overwritten != 19 || removed != 18 {
		t.Errorf("seed %d: %d objects, %d overwritten, %d removed", seed, len(ever), overwritten, removed)
	}
	if awaits != 1 {
		t.Errorf("seed %d: %d removals await their output, want 1", seed, awaits)
	}
	if last := steps[len(steps)-1].at; last > uploading+2*rewriting {
		t.Errorf("seed %d: takes %s", seed, last)
	}
}

func checkHandlings(t *testing.T, seed uint64, steps []step) {
	t.Helper()
	changes, last := map[string]int{}, map[string]rig.Handling{}
	drops, doubles, delays := 0, 0, 0
	for _, s := range steps {
		changes[s.key]++
		last[s.key] = s.handling
		switch {
		case s.handling.Drop:
			drops++
		case s.handling.Repeat > 0:
			doubles++
		case s.handling.Delay >= rig.DelayThreshold:
			delays++
		}
	}
	lost := 0
	for key, f := range last {
		if f.Drop && changes[key] == 1 {
			lost++
		}
	}
	if drops != lostFirsts+lostChanges+lostOthers || doubles != doubled || delays < delayed || lost != lostFirsts {
		t.Errorf("seed %d: %d dropped (%d of them all that was said), %d doubled, %d delayed", seed, drops, lost, doubles, delays)
	}
}
