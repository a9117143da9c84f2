package audit_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/audit"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// published writes an output, as a worker does.
func (w *world) published(t *testing.T, key string, pipeline string) {
	t.Helper()
	o := bucket.Object{Body: strings.NewReader("x"), Size: 1, Metadata: map[string]string{"pawl-pipeline": pipeline}}
	if _, err := w.Put(t.Context(), event.Object{Bucket: "out", Key: key}, o, bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
}

// TestOutputs compares outputs with objects: what is missing is done again, what is
// left over is removed, and what is not the pipeline's is let alone.
func TestOutputs(t *testing.T) {
	w := newWorld(t)
	w.pipeline.Prefix = "in/"
	w.pipeline.Output = &audit.Output{
		Bucket: "out", Prefix: "o/",
		Of: func(k ledger.RowKey) event.Object {
			return event.Object{Bucket: "out", Key: "o/" + strings.TrimPrefix(k.Key, "in/") + ".webp"}
		},
		Source: func(key string) (ledger.RowKey, bool) {
			rest, ok := strings.CutSuffix(strings.TrimPrefix(key, "o/"), ".webp")
			return ledger.RowKey{Pipeline: "p", Bucket: photos, Key: "in/" + rest}, ok
		},
	}
	var rows []ledger.Row
	for i := range 2500 {
		// A suffix sorts "1-x" before "1", and the objects' names the other way round.
		key := fmt.Sprintf("in/%04d", i/2) + []string{"", "-x"}[i%2]
		rows = append(rows, had(key, event.Created, w.put(t, key, "a")))
		if i%500 != 7 {
			w.published(t, "o/"+strings.TrimPrefix(key, "in/")+".webp", "p")
		}
	}
	rows = append(rows, had("in/removed", event.Removed, ledger.Identity{}), had("in/removed-too", event.Removed, ledger.Identity{}))
	w.settled(t, rows...)
	w.published(t, "o/removed.webp", "p")
	w.published(t, "o/never-heard-of.webp", "p")
	w.published(t, "o/another's.webp", "q")
	w.published(t, "o/README", "p")
	w.at = time.Now()
	w.published(t, "o/removed-too.webp", "p") // too young
	w.at = time.Now().Add(-24 * time.Hour)

	got := w.audit(t, audit.Options{Outputs: true, DryRun: true})
	if got.NoOutput != 5 || got.NoInput != 2 || got.Foreign != 2 || got.Lost() != 0 || got.Repaired != 0 {
		t.Errorf("a dry run: %+v", got)
	}
	if raised := w.settle(t); raised != nil {
		t.Errorf("a dry run raised %q", raised)
	}
	got = w.audit(t, audit.Options{Outputs: true})
	if got.NoOutput != 5 || got.NoInput != 2 || got.Foreign != 2 || got.Repaired != 7 {
		t.Errorf("%+v", got)
	}
	if again := w.audit(t, audit.Options{Outputs: true}); again.Found() != 0 {
		t.Errorf("again, while workers are at it: %+v", again)
	}
	raised := strings.Join(w.settle(t), "\n")
	for _, want := range []string{"created in/0003-x", "created in/1003-x", "removed in/removed", "removed in/never-heard-of"} {
		if !strings.Contains(raised+"\n", want+"\n") {
			t.Errorf("%q is not raised, of\n%s", want, raised)
		}
	}
	if strings.Contains(raised, "another") || strings.Contains(raised, "README") || strings.Contains(raised, "too") {
		t.Errorf("raised:\n%s", raised)
	}
}

// TestRedrive gives dead and failed rows fresh attempts, in the same pass.
func TestRedrive(t *testing.T) {
	w := newWorld(t)
	dead, failed := had("dead", event.Created, w.put(t, "dead", "a")), had("failed", event.Created, w.put(t, "failed", "a"))
	dead.Dead, dead.Attempts, dead.LastError = true, 8, "poison"
	failed.Want.Generation++
	failed.Attempts, failed.RetryAt = 3, time.Now().Add(time.Hour)
	w.settled(t, dead, failed, had("fine", event.Created, w.put(t, "fine", "a")))
	if got, want := w.audit(t, audit.Options{}), (audit.Counts{Listed: 3, Rows: 3, Dead: 1, Failed: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := w.audit(t, audit.Options{Redrive: true}), (audit.Counts{Listed: 3, Rows: 3, Looked: 2, Dead: 1, Failed: 1, Redriven: 2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	rows, err := w.ledger.Load(t.Context(), []ledger.RowKey{dead.RowKey, failed.RowKey})
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		if rows[i].Dead || rows[i].Attempts != 0 || !rows[i].RetryAt.IsZero() {
			t.Errorf("%s is %s after %d attempts", rows[i].RowKey, rows[i].State(time.Now()), rows[i].Attempts)
		}
	}
}
