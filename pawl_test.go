package pawl_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/membucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/virtualtime"
	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/memory"
)

func upper(ctx context.Context, t *pawl.Task) error {
	in, err := t.Open(ctx)
	if err != nil {
		return err
	}
	defer in.Close()
	b, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	out, err := t.Output("text/plain")
	if err != nil {
		return err
	}
	_, err = out.Write(bytes.ToUpper(b))
	return err
}

// site is a bucket "in", a bucket "out", and the store's events.
type site struct {
	t       *testing.T
	began   time.Time
	objects *membucket.Store
	changes int
}

// inTime runs a test in virtual time.
func inTime(t *testing.T, f func(s *site)) {
	t.Helper()
	virtualtime.Test(t, func(t *testing.T) {
		objects := membucket.New(time.Now, []string{"in", "out"}, membucket.WithVersioned("kept"))
		f(&site{t: t, began: time.Now(), objects: objects})
	})
}

func (s *site) since() time.Duration { return time.Since(s.began) }

func (s *site) put(key, content string) event.Event {
	s.t.Helper()
	ref := event.Object{Bucket: "in", Key: key}
	s.write(ref, content)
	return s.created(ref)
}

func (s *site) write(ref event.Object, content string) {
	s.t.Helper()
	o := bucket.Object{Body: strings.NewReader(content), Size: int64(len(content))}
	if _, err := s.objects.Put(s.t.Context(), ref, o, bucket.Condition{}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) created(ref event.Object) event.Event {
	s.t.Helper()
	s.changes++
	seq, err := event.ParseSequencer(fmt.Sprintf("00%016X", s.changes))
	if err != nil {
		s.t.Fatal(err)
	}
	return event.Event{Object: ref, Kind: event.Created, Sequencer: seq, Time: time.Now(), Dialect: event.AWS}
}

func (s *site) wantObject(ref event.Object, want string) {
	s.t.Helper()
	_, body, err := s.objects.Get(s.t.Context(), ref)
	if err != nil {
		s.t.Error(err)
		return
	}
	if got, err := io.ReadAll(body); err != nil || string(got) != want {
		s.t.Errorf("%s is %q (%v), want %q", ref.Key, got, err, want)
	}
}

func (s *site) pawl(h pawl.HandlerFunc, to *pawl.Output, with ...func(*pawl.Config)) *pawl.Pawl {
	s.t.Helper()
	cfg := pawl.Config{
		Ledger: memory.New(), Objects: s.objects, Logger: slog.New(slog.DiscardHandler),
		Pipelines: []pawl.Pipeline{{Name: "upper", Match: pawl.Match{Bucket: "in", Prefix: "docs/"}, Handler: h, To: to}},
	}
	for _, f := range with {
		f(&cfg)
	}
	p, err := pawl.New(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

func from(sources ...pawl.Source) func(*pawl.Config) {
	return func(c *pawl.Config) { c.Sources = sources }
}

var toUp = &pawl.Output{Bucket: "out", Prefix: "up/"}

// list delivers each event separately, and ends when all are answered.
type list struct {
	events []event.Event

	mu      sync.Mutex
	answers []source.Outcome
	at      []time.Time
}

func (l *list) Run(ctx context.Context, sink source.Sink) error {
	var open sync.WaitGroup
	defer open.Wait()
	for _, e := range l.events {
		open.Add(1)
		done := func(o source.Outcome) {
			defer open.Done()
			l.mu.Lock()
			defer l.mu.Unlock()
			l.answers, l.at = append(l.answers, o), append(l.at, time.Now())
		}
		if err := sink.Deliver(ctx, source.Delivery{Events: []event.Event{e}, Done: done}); err != nil {
			open.Done()
			return err
		}
	}
	return nil
}

type failing struct {
	after time.Duration
	err   error
}

func (f failing) Run(ctx context.Context, _ source.Sink) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(f.after):
		return f.err
	}
}

type endless struct{ cause error }

func (e *endless) Run(ctx context.Context, _ source.Sink) error {
	<-ctx.Done()
	e.cause = context.Cause(ctx)
	return errors.New("interrupted") // ignored, because it was cancelled
}

type durable struct{ store.Store }

func (d durable) Traits() store.Traits {
	t := d.Store.Traits()
	t.Volatile = false
	return t
}
