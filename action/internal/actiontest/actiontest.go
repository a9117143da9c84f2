// Package actiontest runs an action in a complete Pawl in memory, for tests.
package actiontest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/membucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/store/memory"
)

const pipeline = "action"

const attempts = 3

// World is one pipeline with its ledger and store.
type World struct {
	Objects bucket.Store
	In, Out string // buckets

	t       *testing.T
	handler pawl.Handler
	ledger  *ledger.Rows
	clock   int
	events  []event.Event
}

// New returns a World with an empty store.
func New(t *testing.T, h pawl.Handler) *World {
	return &World{
		Objects: membucket.New(time.Now, []string{"in", "out"}), In: "in", Out: "out",
		t: t, handler: h, ledger: ledger.NewRows(memory.New()),
	}
}

// Put writes an object to the input bucket.
func (w *World) Put(key, contentType string, content []byte) {
	w.t.Helper()
	o := bucket.Object{Body: bytes.NewReader(content), Size: int64(len(content)), ContentType: contentType}
	if _, err := w.Objects.Put(w.t.Context(), event.Object{Bucket: w.In, Key: key}, o, bucket.Condition{}); err != nil {
		w.t.Fatal(err)
	}
	w.announce(key, event.Created)
}

// Remove removes an object from the input bucket.
func (w *World) Remove(key string) {
	w.t.Helper()
	if err := w.Objects.Delete(w.t.Context(), event.Object{Bucket: w.In, Key: key}, bucket.Condition{}); err != nil {
		w.t.Fatal(err)
	}
	w.announce(key, event.Removed)
}

func (w *World) announce(key string, kind event.Kind) {
	w.t.Helper()
	w.clock++
	seq, err := event.ParseSequencer(fmt.Sprintf("00%016X", w.clock))
	if err != nil {
		w.t.Fatal(err)
	}
	w.events = append(w.events, event.Event{
		Object: event.Object{Bucket: w.In, Key: key}, Kind: kind, Sequencer: seq, Time: time.Now(), Dialect: event.AWS,
	})
}

// Run processes all changes since the last run until their objects are settled or dead.
func (w *World) Run() {
	w.t.Helper()
	w.run(w.t.Context(), &pawl.Output{Bucket: w.Out, Prefix: "made/"})
}

// RunWithoutOutput is Run for a pipeline without an output.
func (w *World) RunWithoutOutput() {
	w.t.Helper()
	w.run(w.t.Context(), nil)
}

func (w *World) run(ctx context.Context, to *pawl.Output) {
	w.t.Helper()
	p, err := pawl.New(pawl.Config{
		Ledger:        w.ledger.Records(),
		Objects:       w.Objects,
		Sources:       []pawl.Source{once(w.events)},
		Pipelines:     []pawl.Pipeline{{Name: pipeline, Match: pawl.Match{Bucket: w.In}, Handler: w.handler, To: to}},
		Retry:         pawl.Retry{Attempts: attempts, Base: time.Millisecond, Max: time.Millisecond},
		SweepInterval: 10 * time.Millisecond,
		Logger:        slog.New(slog.DiscardHandler),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.events = nil
	if err := p.Run(ctx); err != nil {
		w.t.Fatal(err)
	}
}

// Row returns the row of an input.
func (w *World) Row(key string) ledger.Row {
	w.t.Helper()
	rows, err := w.ledger.Load(w.t.Context(), []ledger.RowKey{{Pipeline: pipeline, Bucket: w.In, Key: key}})
	if err != nil || len(rows) != 1 {
		w.t.Fatalf("no row for %q: %v", key, err)
	}
	return rows[0]
}

// Output returns the output of an input. ok is false if there is none.
func (w *World) Output(key string) (content []byte, contentType string, ok bool) {
	w.t.Helper()
	info, body, err := w.Objects.Get(w.t.Context(), event.Object{Bucket: w.Out, Key: "made/" + key})
	if errors.Is(err, bucket.ErrNotFound) {
		return nil, "", false
	}
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = body.Close() }()
	content, err = io.ReadAll(body)
	if err != nil {
		w.t.Fatal(err)
	}
	return content, info.ContentType, true
}

// Settled fails the test unless the object is settled.
func (w *World) Settled(key string) {
	w.t.Helper()
	if r := w.Row(key); !r.Settled() || r.Dead {
		w.t.Errorf("%q is not settled: %s", key, r.LastError)
	}
}

// Dead fails the test unless the object is dead after one attempt (permanent) or all attempts. It
// returns the last error.
func (w *World) Dead(key string, permanent bool) string {
	w.t.Helper()
	want := attempts
	if permanent {
		want = 1
	}
	r := w.Row(key)
	if !r.Dead || r.Attempts != want {
		w.t.Errorf("%q: dead %v after %d attempts (%s), want dead after %d", key, r.Dead, r.Attempts, r.LastError, want)
	}
	return r.LastError
}

// once ignores outcomes, because the ledger keeps the events of objects that are backing off.
type once []event.Event

func (o once) Run(ctx context.Context, sink source.Sink) error {
	done := make(chan source.Outcome, len(o))
	for _, e := range o {
		d := source.Delivery{Events: []event.Event{e}, Done: func(out source.Outcome) { done <- out }}
		if err := sink.Deliver(ctx, d); err != nil {
			return err
		}
	}
	for range o {
		<-done
	}
	return nil
}

// SharedBy returns the number of objects that make an error an outage, or 0 for never.
func SharedBy(err error, cause string) (objects int) {
	for ; err != nil; err = errors.Unwrap(err) {
		for n := 1; n <= 10; n++ {
			if reflect.DeepEqual(err, pawl.OutageIfShared(errors.Unwrap(err), cause, n)) {
				return n
			}
		}
	}
	return 0
}
