package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/memory"
)

func TestRunSettlesEverything(t *testing.T) {
	inTime(t, func(s *site) {
		events := &list{}
		for i := range 500 {
			key := fmt.Sprintf("docs/%d.txt", i)
			events.events = append(events.events, s.put(key, key))
		}
		events.events = append(events.events, events.events[7], s.put("other/a.txt", "unmatched"))
		p := s.pawl(upper, toUp, from(events))
		if err := p.Run(s.t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range 500 {
			s.wantObject(event.Object{Bucket: "out", Key: fmt.Sprintf("up/%d.txt", i)}, fmt.Sprintf("DOCS/%d.TXT", i))
		}
		if d := cmp.Diff(pawl.Stats{Raised: 500, Duplicate: 1, Claimed: 500, Completed: 500}, p.Stats()); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	})
}

func TestRunWaitsForRetries(t *testing.T) {
	inTime(t, func(s *site) {
		tries := 0
		events := &list{events: []event.Event{s.put("docs/late", "x"), s.put("docs/never", "x")}}
		p := s.pawl(func(ctx context.Context, task *pawl.Task) error {
			if task.Object.Key == "docs/never" {
				return pawl.Permanent(errors.New("not a document"))
			}
			if tries++; tries < 4 {
				return pawl.RetryAfter(errors.New("busy"), time.Minute)
			}
			return upper(ctx, task)
		}, toUp, from(events))
		if err := p.Run(s.t.Context()); err != nil {
			t.Fatal(err)
		}
		s.wantObject(event.Object{Bucket: "out", Key: "up/late"}, "X")
		if took := s.since(); took < 3*time.Minute || took > 4*time.Minute {
			t.Errorf("it took %s", took)
		}
		if got := p.Stats(); got.Completed != 1 || got.Died != 1 || got.Failed != 4 {
			t.Errorf("%+v", got)
		}
	})
}

type signalling struct {
	*list
	begun chan struct{}
}

func (s *signalling) Run(ctx context.Context, sink source.Sink) error {
	close(s.begun)
	return s.list.Run(ctx, sink)
}

// Some stores can be checked only after a source listens.
func TestCheckRunsBeforeProcessing(t *testing.T) {
	wrong := errors.New("no such bucket")
	for _, verdict := range []error{nil, wrong} {
		inTime(t, func(s *site) {
			events, handled := &signalling{&list{events: []event.Event{s.put("docs/a", "x")}}, make(chan struct{})}, false
			p := s.pawl(func(ctx context.Context, task *pawl.Task) error {
				handled = true
				return upper(ctx, task)
			}, toUp, from(events), func(c *pawl.Config) {
				c.Check = func(context.Context) error {
					<-events.begun
					time.Sleep(time.Minute)
					if handled {
						t.Error("an object was processed before the check")
					}
					return verdict
				}
			})
			if err := p.Run(s.t.Context()); !errors.Is(err, verdict) {
				t.Errorf("ended with %v, want %v", err, verdict)
			}
			if handled != (verdict == nil) {
				t.Errorf("the check says %v, and the handler has run: %v", verdict, handled)
			}
		})
	}
}

func TestRunReturnsTheErrorOfTheFirstSourceThatFails(t *testing.T) {
	inTime(t, func(s *site) {
		broken, later := errors.New("the queue is gone"), errors.New("so is the other")
		other := &endless{}
		p := s.pawl(upper, toUp, from(&list{}, other, failing{time.Hour, later}, failing{time.Minute, broken}))
		err := p.Run(s.t.Context())
		if err == nil || err.Error() != broken.Error() || s.since() != time.Minute {
			t.Errorf("ended after %s with %v", s.since(), err)
		}
		if !errors.Is(other.cause, broken) {
			t.Errorf("the other source was cancelled with %v", other.cause)
		}
	})
}

func TestRunEndsWithItsContext(t *testing.T) {
	inTime(t, func(s *site) {
		ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
		defer cancel()
		p := s.pawl(upper, toUp, from(&endless{}, failing{time.Hour, errors.New("never")}))
		if err := p.Run(ctx); err != nil || s.since() != time.Minute {
			t.Errorf("ended after %s with %v", s.since(), err)
		}
	})
}

func TestRunReleasesRunningAttempts(t *testing.T) {
	inTime(t, func(s *site) {
		ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
		defer cancel()
		var cause error
		events := &list{events: []event.Event{s.put("docs/a", "x")}}
		p := s.pawl(func(ctx context.Context, _ *pawl.Task) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return cause
		}, nil, from(events), func(c *pawl.Config) {
			c.Ledger = durable{memory.New()}
			c.ShutdownTimeout = 5 * time.Second
		})
		if err := p.Run(ctx); err != nil || s.since() != time.Minute+5*time.Second {
			t.Errorf("ended after %s with %v", s.since(), err)
		}
		if !errors.Is(cause, pawl.ErrShutdown) || p.Stats().Released != 1 {
			t.Errorf("cancelled by %v: %+v", cause, p.Stats())
		}
	})
}

func TestRunWithoutSourcesSweeps(t *testing.T) {
	inTime(t, func(s *site) {
		e := s.put("docs/a", "x")
		store := memory.New()
		row := ledger.Row{RowKey: ledger.RowKey{Pipeline: "upper", Bucket: "in", Key: "docs/a"}}
		row, _ = row.Observe(&e, true, time.Now())
		policy := ledger.DefaultPolicy()
		row, _, _ = row.Claim("killed", &policy, time.Now())
		row.Nonce = ledger.Nonce{1}
		if _, err := ledger.NewRows(store).Swap(s.t.Context(), []ledger.Change{{Key: row.RowKey, Row: &row}}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(s.t.Context(), time.Hour)
		defer cancel()
		p := s.pawl(upper, toUp, func(c *pawl.Config) { c.Ledger = store })
		if err := p.Run(ctx); err != nil || s.since() != time.Hour {
			t.Errorf("ended after %s with %v", s.since(), err)
		}
		s.wantObject(event.Object{Bucket: "out", Key: "up/a"}, "X")
		if got := p.Stats(); got.TakenOver != 1 || got.NothingToDo != 1 {
			t.Errorf("%+v, want a takeover and its verification", got)
		}
	})
}

func TestAck(t *testing.T) {
	const work = time.Minute
	for name, c := range map[string]struct {
		ledger store.Store
		ack    pawl.Ack
		want   time.Duration
	}{
		"a ledger that keeps":               {durable{memory.New()}, pawl.AckStored, 0},
		"a ledger that keeps, when settled": {durable{memory.New()}, pawl.AckSettled, work},
		"a ledger that forgets":             {memory.New(), pawl.AckStored, work},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(s *site) {
				events := &list{events: []event.Event{s.put("docs/a", "x")}}
				p := s.pawl(func(context.Context, *pawl.Task) error {
					<-time.After(work)
					return nil
				}, nil, from(events), func(cfg *pawl.Config) { cfg.Ledger, cfg.Ack = c.ledger, c.ack })
				if err := p.Run(s.t.Context()); err != nil {
					t.Fatal(err)
				}
				if len(events.answers) != 1 || !events.answers[0].Ack || events.at[0].Sub(s.began) != c.want {
					t.Errorf("answered %+v at %s, want after %s", events.answers, events.at, c.want)
				}
			})
		})
	}
}

func TestRunWithoutSweepsReturnsUnsettledMessages(t *testing.T) {
	inTime(t, func(s *site) {
		store := memory.New()
		e := s.put("docs/a", "x")
		tries := 0
		lambda := func() *list {
			events := &list{events: []event.Event{e}}
			p := s.pawl(func(ctx context.Context, task *pawl.Task) error {
				if tries++; tries == 1 {
					return pawl.RetryAfter(errors.New("busy"), time.Minute)
				}
				return upper(ctx, task)
			}, toUp, from(events), func(c *pawl.Config) {
				c.Ledger, c.NoSweep, c.Ack = durable{store}, true, pawl.AckSettled
			})
			from := s.since()
			if err := p.Run(s.t.Context()); err != nil || s.since() != from || p.Stats().Unsettled != 0 {
				t.Errorf("ended after %s with %v, %+v", s.since()-from, err, p.Stats())
			}
			return events
		}
		if got := lambda().answers; len(got) != 1 || got[0].Ack || got[0].RetryAfter != time.Minute {
			t.Errorf("answered %+v, want a redelivery in a minute", got)
		}
		<-time.After(time.Minute)
		if got := lambda().answers; len(got) != 1 || !got[0].Ack {
			t.Errorf("answered %+v", got)
		}
		s.wantObject(event.Object{Bucket: "out", Key: "up/a"}, "X")
	})
}

type tally map[engine.Kind]int

func (c tally) Observe(r pawl.Notice) { c[r.Kind]++ }

func TestObserver(t *testing.T) {
	inTime(t, func(s *site) {
		signalling := tally{}
		events := &list{events: []event.Event{s.put("docs/a", "x"), s.put("docs/b", "x")}}
		p := s.pawl(upper, toUp, from(events), func(c *pawl.Config) { c.Observer = signalling })
		if err := p.Run(s.t.Context()); err != nil {
			t.Fatal(err)
		}
		if signalling[engine.Committed] != 2 || signalling[engine.Raised] != 2 || signalling[engine.Acknowledged] != 2 {
			t.Errorf("signalling %v", signalling)
		}
	})
}

func TestEachVersionHasItsOwnOutput(t *testing.T) {
	inTime(t, func(s *site) {
		kept := event.Object{Bucket: "kept", Key: "a.txt"}
		events := &list{}
		for i, content := range []string{"one", "two"} {
			s.write(kept, content)
			kept.VersionID = fmt.Sprint("v", i+1)
			events.events = append(events.events, s.created(kept))
			kept.VersionID = ""
		}
		slices.Reverse(events.events) // versions have no order
		p := s.pawl(upper, &pawl.Output{Bucket: "out", Suffix: ".up"}, from(events), func(c *pawl.Config) {
			c.Pipelines[0].Match = pawl.Match{Bucket: "kept"}
			c.Pipelines[0].EachVersion = true
		})
		if err := p.Run(s.t.Context()); err != nil {
			t.Fatal(err)
		}
		s.wantObject(event.Object{Bucket: "out", Key: "a.txt@v1.up"}, "ONE")
		s.wantObject(event.Object{Bucket: "out", Key: "a.txt@v2.up"}, "TWO")
	})
}
