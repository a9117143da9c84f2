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

// Without an object, published writes the metadata of an older version of Pawl.
func (w *world) published(t *testing.T, key string, pipeline, of string) {
	t.Helper()
	o := bucket.Object{Body: strings.NewReader("x"), Size: 1, Metadata: map[string]string{"pawl-pipeline": pipeline}}
	if of != "" {
		o.Metadata["pawl-object"] = ledger.RowKey{Pipeline: pipeline, Bucket: photos, Key: of}.Digest()
	}
	if _, err := w.Put(t.Context(), event.Object{Bucket: "out", Key: key}, o, bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
}

func (w *world) places(prefix string) {
	w.pipeline.Prefix = prefix
	w.pipeline.Output = &audit.Output{
		Bucket: "out", Prefix: "o/",
		Of: func(k ledger.RowKey) event.Object {
			return event.Object{Bucket: "out", Key: "o/" + strings.TrimPrefix(k.Key, prefix) + ".webp"}
		},
		Source: func(key string) (ledger.RowKey, bool) {
			rest, ok := strings.CutSuffix(strings.TrimPrefix(key, "o/"), ".webp")
			return ledger.RowKey{Pipeline: "p", Bucket: photos, Key: prefix + rest}, ok
		},
	}
}

func TestOutputs(t *testing.T) {
	w := newWorld(t)
	w.places("in/")
	var rows []ledger.Row
	for i := range 2500 {
		// "1-x" sorts before "1" only with a suffix.
		key := fmt.Sprintf("in/%04d", i/2) + []string{"", "-x"}[i%2]
		rows = append(rows, rowWithHave(key, event.Created, w.put(t, key, "a")))
		if i%500 != 7 {
			w.published(t, "o/"+strings.TrimPrefix(key, "in/")+".webp", "p", key)
		}
	}
	rows = append(rows, rowWithHave("in/removed", event.Removed, ledger.Identity{}), rowWithHave("in/removed-too", event.Removed, ledger.Identity{}))
	w.settled(t, rows...)
	w.published(t, "o/removed.webp", "p", "in/removed")
	w.published(t, "o/never-heard-of.webp", "p", "in/never-heard-of")
	w.published(t, "o/another's.webp", "q", "in/another's")
	w.published(t, "o/README", "p", "in/README")
	w.at = time.Now()
	w.published(t, "o/removed-too.webp", "p", "in/removed-too") // too recent
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
		t.Errorf("again, before workers have finished: %+v", again)
	}
	raised := strings.Join(w.settle(t), "\n")
	for _, want := range []string{"created in/0003-x", "created in/1003-x", "removed in/removed", "removed in/never-heard-of"} {
		if !strings.Contains(raised+"\n", want+"\n") {
			t.Errorf("%q is not raised, only\n%s", want, raised)
		}
	}
	if strings.Contains(raised, "another") || strings.Contains(raised, "README") || strings.Contains(raised, "too") {
		t.Errorf("raised:\n%s", raised)
	}
}

// The metadata names the pipeline, but another object than the key.
func TestForeignOutputsAreKept(t *testing.T) {
	w := newWorld(t)
	w.places("in/")
	w.settled(t,
		rowWithHave("in/a", event.Created, w.put(t, "in/a", "a")), rowWithHave("in/b", event.Created, w.put(t, "in/b", "b")),
		rowWithHave("in/copied-to", event.Removed, ledger.Identity{}), rowWithHave("in/removed", event.Removed, ledger.Identity{}))
	w.published(t, "o/a.webp", "p", "in/a")
	w.published(t, "o/b.webp", "p", "") // from an older version of Pawl
	w.published(t, "o/favourites/a.webp", "p", "in/a")
	w.published(t, "o/copied-to.webp", "p", "in/a")
	w.published(t, "o/old.webp", "p", "") // its metadata names no object
	w.published(t, "o/removed.webp", "p", "")
	for _, test := range []struct {
		name, prefix     string
		noInput, foreign int64
		raised           string
	}{
		{"the prefix has changed", "pics/", 0, 6, ""},
		{"there are copies", "in/", 1, 3, "removed in/removed"},
	} {
		w.places(test.prefix)
		r, err := w.auditor(t).Run(t.Context(), audit.Options{Outputs: true, SettleWindow: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Total(); got.NoInput != test.noInput || got.Foreign != test.foreign || got.Found() != test.noInput {
			t.Errorf("%s: %+v", test.name, got)
		}
		if raised := strings.Join(w.settle(t), ", "); raised != test.raised {
			t.Errorf("%s: raised %s, want %q", test.name, raised, test.raised)
		}
		want := audit.Example{What: "output without object", Pipeline: "p", Object: "s3://photos/in/removed", Output: "s3://out/o/removed.webp"}
		if test.noInput == 1 && (len(r.Examples) != 1 || r.Examples[0] != want) {
			t.Errorf("examples: %+v, want %+v", r.Examples, want)
		}
	}
}

func TestRedrive(t *testing.T) {
	w := newWorld(t)
	dead, failed := rowWithHave("dead", event.Created, w.put(t, "dead", "a")), rowWithHave("failed", event.Created, w.put(t, "failed", "a"))
	dead.Dead, dead.Attempts, dead.LastError = true, 8, "poison"
	failed.Want.Generation++
	failed.Attempts, failed.RetryAt = 3, time.Now().Add(time.Hour)
	w.settled(t, dead, failed, rowWithHave("fine", event.Created, w.put(t, "fine", "a")))
	if got, want := w.audit(t, audit.Options{}), (audit.Counts{Listed: 3, Rows: 3, Created: 3, Dead: 1, Failed: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := w.audit(t, audit.Options{Redrive: true}), (audit.Counts{Listed: 3, Rows: 3, Created: 3, Inspected: 2, Dead: 1, Failed: 1, Redriven: 2}); got != want {
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
