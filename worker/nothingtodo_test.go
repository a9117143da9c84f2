package worker_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/worker"
)

// situation is the state of a settled object at a new claim.
type situation struct {
	output    string // "none": the pipeline has no output; otherwise the output's state
	kind      event.Kind
	changed   bool   // the input differs from Have
	doubt     string // "none"; "look": an earlier attempt may have had an effect; "act": forced
	verifying bool
}

func situations(kind event.Kind, outputs ...string) (all []situation) {
	for _, output := range outputs {
		for _, changed := range []bool{false, true} {
			for _, doubt := range []string{"none", "look", "act"} {
				for _, verifying := range []bool{false, true} {
					all = append(all, situation{output, kind, changed, doubt, verifying})
				}
			}
		}
	}
	return all
}

func TestNothingToDo(t *testing.T) {
	for _, c := range []struct {
		name string
		all  []situation
		want string
	}{
		{"created", situations(event.Created, "right", "foreign", "gone", "none"), `
			output  input   doubt verifying
			right   same    none  false     -
			right   same    none  true      -
			right   same    look  false     -
			right   same    look  true      -
			right   same    act   false     act
			right   same    act   true      act
			right   changed none  false     act
			right   changed none  true      act
			right   changed look  false     act
			right   changed look  true      act
			right   changed act   false     act
			right   changed act   true      act
			foreign same    none  false     -
			foreign same    none  true      act
			foreign same    look  false     act
			foreign same    look  true      act
			foreign same    act   false     act
			foreign same    act   true      act
			foreign changed none  false     act
			foreign changed none  true      act
			foreign changed look  false     act
			foreign changed look  true      act
			foreign changed act   false     act
			foreign changed act   true      act
			gone    same    none  false     -
			gone    same    none  true      act
			gone    same    look  false     act
			gone    same    look  true      act
			gone    same    act   false     act
			gone    same    act   true      act
			gone    changed none  false     act
			gone    changed none  true      act
			gone    changed look  false     act
			gone    changed look  true      act
			gone    changed act   false     act
			gone    changed act   true      act
			none    same    none  false     -
			none    same    none  true      -
			none    same    look  false     act
			none    same    look  true      act
			none    same    act   false     act
			none    same    act   true      act
			none    changed none  false     act
			none    changed none  true      act
			none    changed look  false     act
			none    changed look  true      act
			none    changed act   false     act
			none    changed act   true      act`},
		{"crashed between publish and complete", []situation{
			{"ahead", event.Created, true, "none", false}, {"ahead", event.Created, true, "none", true},
			{"ahead", event.Created, true, "look", false}, {"ahead", event.Created, true, "act", false},
		}, `
			output  input   doubt verifying
			ahead   changed none  false     act
			ahead   changed none  true      -
			ahead   changed look  false     -
			ahead   changed act   false     act`},
		{"removed", situations(event.Removed, "right", "foreign"), `
			output  input   doubt verifying
			right   same    none  false     -
			right   same    none  true      -
			right   same    look  false     -
			right   same    look  true      -
			right   same    act   false     act
			right   same    act   true      act
			right   changed none  false     act
			right   changed none  true      -
			right   changed look  false     -
			right   changed look  true      -
			right   changed act   false     act
			right   changed act   true      act
			foreign same    none  false     -
			foreign same    none  true      act
			foreign same    look  false     act
			foreign same    look  true      act
			foreign same    act   false     act
			foreign same    act   true      act
			foreign changed none  false     act
			foreign changed none  true      act
			foreign changed look  false     act
			foreign changed look  true      act
			foreign changed act   false     act
			foreign changed act   true      act`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got strings.Builder
			fmt.Fprintln(&got, "output  input   doubt verifying")
			for _, s := range c.all {
				inWorld(t, func(w *world) { s.play(w, &got) })
			}
			if d := cmp.Diff(trimmed(c.want), trimmed(got.String())); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func (s *situation) play(w *world, to *strings.Builder) {
	pipeline := toOut(upper)
	if s.output == "none" {
		pipeline = matchAll(func(context.Context, *worker.Task) error { return nil })
	}
	n := w.start(pipeline)
	n.deliver(w.put("a", "one"))
	if s.kind == event.Removed {
		n.deliver(w.remove("a"))
	}
	w.wantSettled("a")
	w.spoil(s)
	w.change("a", func(r *ledger.Row) {
		r.Doubt, r.Forced = s.doubt == "look", s.doubt == "act"
		if s.verifying {
			r.VerifyAt = time.Now()
		} else {
			r.Want.Generation++
		}
	})
	before := n.Stats()
	w.pass(3 * time.Second)
	after := n.Stats()
	what := "-"
	if after.Completed > before.Completed {
		what = "act"
	}
	if ends := after.Completed + after.NothingToDo - before.Completed - before.NothingToDo; ends != 1 {
		w.t.Errorf("%+v: %d attempts, want 1", *s, ends)
	}
	if r := w.row("a"); r.Doubt || !r.VerifyAt.IsZero() {
		w.t.Errorf("%+v: the row has doubt %v, verify at %s", *s, r.Doubt, r.VerifyAt)
	}
	w.wantSettled("a")
	input := map[bool]string{false: "same", true: "changed"}[s.changed]
	fmt.Fprintf(to, "%-7s %-7s %-5s %-9v %s\n", s.output, input, s.doubt, s.verifying, what)
}

func (w *world) spoil(s *situation) {
	switch s.output {
	case "foreign":
		w.write(out("a"), "another's", nil)
	case "gone":
		w.erase(out("a"))
	}
	switch {
	case s.output == "ahead": // made from a newer input than Have
		w.change("a", func(r *ledger.Row) { r.Have.Identity.ETag = "older" })
	case s.changed && s.kind == event.Created:
		w.write(in("a"), "two", nil)
	case s.changed:
		// Have is created, so the removal is a change.
		w.change("a", func(r *ledger.Row) { r.Have.Kind = event.Created })
	}
}

func trimmed(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}
