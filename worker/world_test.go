package worker_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/membucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/virtualtime"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/store/memory"
	"github.com/pawlhq/pawl/worker"
)

type world struct {
	t        *testing.T
	began    time.Time
	objects  *membucket.Store
	rows     *ledger.Rows
	log      *logbook
	recorder *recorder
	changes  int
}

func inWorld(t *testing.T, f func(w *world)) {
	t.Helper()
	virtualtime.Test(t, func(t *testing.T) {
		f(&world{
			t: t, began: time.Now(),
			objects: membucket.New(time.Now, []string{"in", "out"}, membucket.WithVersioned("kept")),
			rows:    ledger.NewRows(memory.New()), log: &logbook{}, recorder: &recorder{},
		})
	})
}

// pass also waits until all goroutines are blocked.
func (w *world) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (w *world) since() time.Duration { return time.Since(w.began) }

func (w *world) write(ref event.Object, content string, metadata map[string]string) {
	w.t.Helper()
	o := bucket.Object{Body: strings.NewReader(content), Size: int64(len(content)), Metadata: metadata}
	if _, err := w.objects.Put(w.t.Context(), ref, o, bucket.Condition{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) put(key, content string) event.Event {
	w.t.Helper()
	w.write(in(key), content, nil)
	return w.event(in(key), event.Created)
}

func (w *world) remove(key string) event.Event {
	w.t.Helper()
	w.erase(in(key))
	return w.event(in(key), event.Removed)
}

func (w *world) erase(ref event.Object) {
	w.t.Helper()
	if err := w.objects.Delete(w.t.Context(), ref, bucket.Condition{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) event(ref event.Object, kind event.Kind) event.Event {
	w.t.Helper()
	w.changes++
	seq, err := event.ParseSequencer(fmt.Sprintf("00%016X", w.changes))
	if err != nil {
		w.t.Fatal(err)
	}
	return event.Event{Object: ref, Kind: kind, Sequencer: seq, Time: time.Now(), Dialect: event.AWS}
}

func (w *world) content(ref event.Object) (content string, ok bool) {
	w.t.Helper()
	_, body, err := w.objects.Get(context.WithoutCancel(w.t.Context()), ref)
	if errors.Is(err, bucket.ErrNotFound) {
		return "", false
	}
	if err != nil {
		w.t.Fatal(err)
	}
	b, err := io.ReadAll(body)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(b), true
}

// wantOutput wants a missing output if want is "".
func (w *world) wantOutput(key, want string) {
	w.t.Helper()
	if got, ok := w.content(out(key)); got != want || ok != (want != "") {
		w.t.Errorf("after %s the output of %q is %q (there: %v), want %q", w.since(), key, got, ok, want)
	}
}

func (w *world) row(key string) ledger.Row {
	w.t.Helper()
	rows, err := w.rows.Load(context.WithoutCancel(w.t.Context()), []ledger.RowKey{rowKey(key)})
	if err != nil || len(rows) != 1 {
		w.t.Fatalf("no row for %q: %v", key, err)
	}
	return rows[0]
}

func (w *world) change(key string, f func(r *ledger.Row)) {
	w.t.Helper()
	row := w.row(key)
	next := row
	f(&next)
	if _, err := rand.Read(next.Nonce[:]); err != nil {
		w.t.Fatal(err)
	}
	res, err := w.rows.Swap(w.t.Context(), []ledger.Change{{Key: row.RowKey, Expect: row.Nonce, Row: &next}})
	if err != nil || !res[0].Applied {
		w.t.Fatalf("the row of %q cannot be changed: %v", key, err)
	}
}

func (w *world) wantSettled(key string) {
	w.t.Helper()
	if r := w.row(key); !r.Settled() || r.Held() || r.Dead {
		w.t.Errorf("after %s %q is not settled but %s: %s\n%s", w.since(), key, r.State(time.Now()), r.LastError, history(&r))
	}
}

func history(r *ledger.Row) string {
	var b strings.Builder
	for _, e := range r.History {
		fmt.Fprintln(&b, e.At.Format(time.TimeOnly), e.What, e.Note)
	}
	return b.String()
}

func in(key string) event.Object  { return event.Object{Bucket: "in", Key: key} }
func out(key string) event.Object { return event.Object{Bucket: "out", Key: "up/" + key} }

func rowKey(key string) ledger.RowKey {
	return ledger.RowKey{Pipeline: "upper", Bucket: "in", Key: key}
}

func matchAll(h worker.HandlerFunc) *worker.Pipeline {
	return &worker.Pipeline{Name: "upper", Match: func(event.Object) bool { return true }, Handler: h}
}

func toOut(h worker.HandlerFunc) *worker.Pipeline {
	p := matchAll(h)
	p.Output = func(k ledger.RowKey) event.Object { return out(k.Key) }
	return p
}

func upper(ctx context.Context, t *worker.Task) error {
	content, err := read(ctx, t)
	if err != nil {
		return err
	}
	return write(t, strings.ToUpper(content))
}

func read(ctx context.Context, t *worker.Task) (string, error) {
	body, err := t.Open(ctx)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(body)
	return string(b), errors.Join(err, body.Close())
}

func write(t *worker.Task, content string) error {
	to, err := t.Output("text/plain")
	if err != nil {
		return err
	}
	_, err = io.WriteString(to, content)
	return err
}
