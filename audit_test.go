package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/source"
)

type messenger struct {
	mu     sync.Mutex
	due    map[time.Time][]event.Event
	raised map[string]int // raised by audits, by key
	audits int
}

func (m *messenger) Run(ctx context.Context, sink source.Sink) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		m.mu.Lock()
		var now []event.Event
		for at, events := range m.due {
			if !at.After(time.Now()) {
				now = append(now, events...)
				delete(m.due, at)
			}
		}
		m.mu.Unlock()
		for _, e := range now {
			if err := sink.Deliver(ctx, source.Delivery{Events: []event.Event{e}, Done: func(source.Outcome) {}}); err != nil {
				return nil
			}
		}
	}
}

func (m *messenger) Observe(r engine.Notice) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch r.Kind {
	case engine.LossRepaired:
		m.raised[r.Key.Key]++
	case engine.Audited:
		m.audits++
	}
}

// Notifications arrive late, twice or never. The audits raise each lost change once and no other.
func TestAuditBesideTraffic(t *testing.T) {
	inTime(t, func(s *site) {
		t := s.t
		m := &messenger{due: map[time.Time][]event.Event{}, raised: map[string]int{}}
		var mu sync.Mutex
		effects := map[string]int{}
		p := s.pawl(func(_ context.Context, task *pawl.Task) error {
			mu.Lock()
			defer mu.Unlock()
			version := fmt.Sprint(task.Object.Key, " ", task.Kind, " ", task.Info.ETag, " ", task.Info.ModTime)
			if task.Kind == event.Created {
				effects[version]++
			}
			return nil
		}, nil, func(c *pawl.Config) {
			c.Sources = []pawl.Source{m}
			c.Observer = m
		})
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := p.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			for ctx.Err() == nil {
				if _, err := p.Audit(ctx, pawl.AuditOptions{SettleWindow: 10 * time.Minute}); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
				time.Sleep(7 * time.Second)
			}
		})
		rng := rand.New(rand.NewPCG(7, 7))
		lost := map[string]int{}
		for i := range auditedWrites {
			time.Sleep(time.Duration(rng.IntN(7)) * time.Second)
			key := fmt.Sprintf("docs/%03d", rng.IntN(200))
			e := s.put(key, fmt.Sprint("content ", i))
			if rng.IntN(10) == 0 {
				lost[key]++
				continue
			}
			m.mu.Lock()
			for range 1 + rng.IntN(2) {
				at := time.Now().Add(time.Duration(rng.IntN(300)) * time.Second)
				m.due[at] = append(m.due[at], e)
			}
			m.mu.Unlock()
		}
		time.Sleep(auditedPause)
		stop()
		wg.Wait()
		found := 0
		for key, n := range m.raised {
			found++
			if n > lost[key] {
				t.Errorf("%s was raised %d times, and lost %d times", key, n, lost[key])
			}
		}
		for version, n := range effects {
			if n != 1 {
				t.Errorf("%s had its effect %d times", version, n)
			}
		}
		t.Logf("%d audits during %d changes raised %d objects; %d objects had lost notifications", m.audits, auditedWrites, found, len(lost))
		if found == 0 || m.audits < 100 {
			t.Errorf("%d found by %d audits", found, m.audits)
		}
	})
}

func TestAuditSchedule(t *testing.T) {
	inTime(t, func(s *site) {
		t := s.t
		done := 0
		p := s.pawl(func(context.Context, *pawl.Task) error { done++; return nil }, nil, func(c *pawl.Config) {
			c.Audit = pawl.Audit{Every: 24 * time.Hour, SettleWindow: time.Hour}
		})
		s.put("docs/a", "a")
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(30*time.Hour, stop)
		if err := p.Run(ctx); err != nil || done != 1 {
			t.Errorf("%d effects, %v", done, err)
		}
	})
}

func TestAuditErrors(t *testing.T) {
	inTime(t, func(s *site) {
		t := s.t
		p := s.pawl(func(context.Context, *pawl.Task) error { return nil }, nil, func(c *pawl.Config) {
			c.Objects, c.Pipelines[0].Order = nil, pawl.EventOrder
		})
		if _, err := p.Audit(t.Context(), pawl.AuditOptions{}); !errors.Is(err, pawl.ErrConfig) || !strings.Contains(err.Error(), "object store") {
			t.Error(err)
		}
		if all, err := p.Audits(t.Context()); len(all) != 0 || err != nil {
			t.Error(all, err)
		}
	})
}
