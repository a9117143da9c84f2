package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/memory"
)

func invoked(store *memory.Store, d time.Duration) func(*pawl.Config) {
	return func(c *pawl.Config) {
		c.Ledger, c.Deadline = durable{store}, time.Now().Add(d)
		c.NoSweep, c.SweptElsewhere = true, true
	}
}

func (s *site) row(store *memory.Store, key string) ledger.Row {
	s.t.Helper()
	rows, err := ledger.NewRows(store).Load(s.t.Context(), []ledger.RowKey{{Pipeline: "upper", Bucket: "in", Key: key}})
	if err != nil || len(rows) != 1 {
		s.t.Fatalf("%d rows of %s: %v", len(rows), key, err)
	}
	return rows[0]
}

// The handler uses up an attempt, because it had half of the time.
func TestDeadlineCancelsHandlers(t *testing.T) {
	for name, c := range map[string]struct {
		begins   time.Duration
		attempts int
	}{
		"begun early": {0, 1},
		"begun late":  {40 * time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(s *site) {
				store := memory.New()
				var until time.Time
				hang := func(ctx context.Context, _ *pawl.Task) error {
					until = s.row(store, "docs/a").Lease.Until
					<-ctx.Done()
					return context.Cause(ctx)
				}
				events := &list{events: []event.Event{s.put("docs/a", "x")}}
				p := s.pawl(hang, nil, invoked(store, time.Minute), from(later{c.begins, events}))
				if err := p.Run(s.t.Context()); err != nil || s.since() != 58*time.Second {
					t.Errorf("Run ended after %s with %v, want 58s", s.since(), err)
				}
				if want := s.began.Add(time.Minute + 5*time.Second); !until.Equal(want) {
					t.Errorf("the lease ends %s after the deadline, want the skew of 5s", until.Sub(want)+5*time.Second)
				}
				row := s.row(store, "docs/a")
				if row.Held() || row.Attempts != c.attempts {
					t.Errorf("held %t, %d attempts, want %d", row.Held(), row.Attempts, c.attempts)
				}
			})
		})
	}
}

type later struct {
	after time.Duration
	*list
}

func (l later) Run(ctx context.Context, sink source.Sink) error {
	select {
	case <-time.After(l.after):
	case <-ctx.Done():
		return nil
	}
	return l.list.Run(ctx, sink)
}

func TestNoHandlerStartsInTheLastQuarter(t *testing.T) {
	inTime(t, func(s *site) {
		store := memory.New()
		p := s.pawl(func(context.Context, *pawl.Task) error {
			t.Error("the handler started")
			return nil
		}, nil, invoked(store, time.Minute), from(later{46 * time.Second, &list{events: []event.Event{s.put("docs/a", "x")}}}))
		if err := p.Run(s.t.Context()); err != nil || s.since() != 45*time.Second {
			t.Errorf("Run ended after %s with %v, want 45s", s.since(), err)
		}
	})
}

func TestSweepProcessesDueRows(t *testing.T) {
	inTime(t, func(s *site) {
		store := memory.New()
		broken := func(context.Context, *pawl.Task) error { return errors.New("busy") }
		events := &list{events: []event.Event{s.put("docs/a", "x"), s.put("docs/b", "x")}}
		if err := s.pawl(broken, toUp, invoked(store, time.Minute), from(events)).Run(s.t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, answer := range events.answers {
			if !answer.Ack {
				t.Error("an event was stored and not acknowledged")
			}
		}
		time.Sleep(time.Minute)
		sweeper := s.pawl(upper, toUp, func(c *pawl.Config) { c.Ledger, c.Deadline = durable{store}, time.Now().Add(time.Minute) })
		complete, err := sweeper.Sweep(s.t.Context(), nil)
		if err != nil || !complete {
			t.Fatalf("complete %t, %v", complete, err)
		}
		s.wantObject(event.Object{Bucket: "out", Key: "up/a"}, "X")
		s.wantObject(event.Object{Bucket: "out", Key: "up/b"}, "X")
	})
}

func TestSweepIsIncompleteWithoutAnswer(t *testing.T) {
	inTime(t, func(s *site) {
		p := s.pawl(upper, toUp, func(c *pawl.Config) {
			c.Ledger, c.Deadline = noDue{durable{memory.New()}}, time.Now().Add(time.Minute)
		})
		if complete, err := p.Sweep(s.t.Context(), nil); complete || err != nil || s.since() != 45*time.Second {
			t.Errorf("complete %t after %s, %v", complete, s.since(), err)
		}
	})
}

type noDue struct{ store.Store }

func (noDue) Due(context.Context, store.DueRange) ([]store.Record, error) {
	return nil, errors.New("no answer")
}

func TestSweepRejectsNoSweep(t *testing.T) {
	inTime(t, func(s *site) {
		p := s.pawl(upper, toUp, invoked(memory.New(), time.Minute), from(&list{}))
		if _, err := p.Sweep(s.t.Context(), nil); !errors.Is(err, pawl.ErrConfig) {
			t.Error(err)
		}
	})
}

func TestDeadlineTooNear(t *testing.T) {
	inTime(t, func(s *site) {
		_, err := pawl.New(pawl.Config{
			Ledger: memory.New(), Objects: s.objects, Deadline: time.Now().Add(3 * time.Second),
			Pipelines: []pawl.Pipeline{{Name: "upper", Match: pawl.Match{Bucket: "in"}, Handler: pawl.HandlerFunc(upper)}},
		})
		if !errors.Is(err, pawl.ErrConfig) || !strings.Contains(err.Error(), "the deadline is in 3s: at least 5s") {
			t.Error(err)
		}
	})
}

type slowLists struct{ bucket.Store }

func (s slowLists) List(ctx context.Context, name, prefix, after string) iter.Seq2[bucket.Info, error] {
	return func(yield func(bucket.Info, error) bool) {
		for info, err := range s.Store.List(ctx, name, prefix, after) {
			select {
			case <-time.After(200 * time.Millisecond):
			case <-ctx.Done():
				yield(bucket.Info{}, context.Cause(ctx))
				return
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

func TestAuditContinuesAcrossInvocations(t *testing.T) {
	inTime(t, func(s *site) {
		store := memory.New()
		for i := range 2000 {
			s.put(fmt.Sprintf("docs/%04d", i), "x")
		}
		time.Sleep(24 * time.Hour)
		began := time.Now()
		for slice := 1; ; slice++ {
			p := s.pawl(upper, toUp, func(c *pawl.Config) {
				c.Ledger, c.Objects, c.Deadline, c.Audit.Every = durable{store}, slowLists{s.objects}, time.Now().Add(4*time.Minute), 24*time.Hour
			})
			if err := p.AuditIfDue(s.t.Context()); err != nil {
				t.Fatal(err)
			}
			audits, err := p.Audits(s.t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(audits) == 1 {
				if slice == 1 || audits[0].Pipelines[0].Repaired != 2000 {
					t.Errorf("%d slices, %+v", slice, audits[0].Pipelines[0])
				}
				return
			}
			if time.Since(began) > 20*time.Hour {
				t.Fatalf("no audit was complete after %d slices", slice)
			}
			time.Sleep(time.Second)
		}
	})
}

func TestAuditIfDue(t *testing.T) {
	inTime(t, func(s *site) {
		store := memory.New()
		s.put("docs/lost", "x")
		time.Sleep(24 * time.Hour)
		scheduled := func(d time.Duration) *pawl.Pawl {
			return s.pawl(upper, toUp, func(c *pawl.Config) {
				c.Ledger, c.Deadline, c.Audit.Every = durable{store}, time.Now().Add(d), time.Hour
			})
		}
		for range 2 {
			if err := scheduled(time.Minute).AuditIfDue(s.t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		p := scheduled(time.Minute)
		if audits, err := p.Audits(s.t.Context()); err != nil || len(audits) != 1 {
			t.Errorf("%d audits within the hour, want 1: %v", len(audits), err)
		}
		if complete, err := p.Sweep(s.t.Context(), nil); !complete || err != nil {
			t.Errorf("complete %t, %v", complete, err)
		}
		s.wantObject(event.Object{Bucket: "out", Key: "up/lost"}, "X")
	})
}

func TestQuarantineEndsWithinAnInvocation(t *testing.T) {
	inTime(t, func(s *site) {
		store, policy := memory.New(), ledger.DefaultPolicy()
		var changes []ledger.Change
		for _, key := range []string{"docs/poison", "docs/zebra"} {
			e := s.put(key, "x")
			row, _ := ledger.Row{RowKey: ledger.RowKey{Pipeline: "upper", Bucket: "in", Key: key}}.Observe(&e, true, time.Now())
			if key == "docs/poison" {
				for i := range policy.Attempts / 2 {
					row, _, _ = row.Claim("killed", &policy, time.Now().Add(time.Duration(i)*time.Minute))
				}
			}
			row.Nonce = ledger.Nonce{byte(len(changes) + 1)}
			changes = append(changes, ledger.Change{Key: row.RowKey, Row: &row})
		}
		if _, err := ledger.NewRows(store).Swap(s.t.Context(), changes); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		began, zebra := time.Now(), time.Duration(0)
		handle := func(ctx context.Context, task *pawl.Task) error {
			if task.Object.Key == "docs/zebra" {
				zebra = time.Since(began)
				return nil
			}
			<-ctx.Done()
			return context.Cause(ctx)
		}
		p := s.pawl(handle, nil, func(c *pawl.Config) {
			c.Ledger, c.Deadline, c.Retry.Base = durable{store}, time.Now().Add(2*time.Minute), time.Hour
			c.Retry.Max = time.Hour
		})
		if _, err := p.Sweep(s.t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if zebra < 29*time.Second || zebra > 35*time.Second {
			t.Errorf("the other object began after %s, want the TTL of 30s", zebra)
		}
	})
}
