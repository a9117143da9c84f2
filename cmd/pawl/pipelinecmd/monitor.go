package pipelinecmd

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/cmd/pawl/admin"
	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/dashboard"
	"github.com/pawlhq/pawl/metrics/prom"
)

// monitor has the metrics of "pawl run" and reports its health.
type monitor struct {
	*prom.Metrics
	pawl  *pawl.Pawl
	m     *app.Runtime
	rates dashboard.Rates
}

// Observe implements [pawl.Observer].
func (mon *monitor) Observe(n pawl.Notice) {
	mon.Metrics.Observe(n)
	mon.rates.Observe(n)
}

// newMonitor makes the runtime report to the metrics. Without an address for them it returns nil.
func newMonitor(a *app.App, m *app.Runtime) *monitor {
	if a.AdminAddress(m.Config) == "" {
		return nil
	}
	names := make([]string, len(m.Parts.Pipelines))
	for i := range names {
		names[i] = m.Parts.Pipelines[i].Name
	}
	mon := &monitor{m: m, Metrics: prom.New(prom.Config{
		Version: app.ThisBuild().Version, Pipelines: names, Slots: m.Config.Concurrency, MaxBacklogEvents: m.Config.MaxBacklogEvents,
	})}
	m.Parts.Observer, m.Parts.Ledger = mon, mon.Store(m.Ledger)
	mon.WatchObjects(m.Objects)
	return mon
}

// watchSources returns sources that count their messages. Two sources of a kind get different
// names.
func (mon *monitor) watchSources(sources []pawl.Source) []pawl.Source {
	if mon == nil {
		return sources
	}
	all := make([]pawl.Source, len(sources))
	for i, name := range mon.sourceNames() {
		all[i] = mon.Source(name, sources[i])
	}
	return all
}

func (mon *monitor) sourceNames() (names []string) {
	seen := map[string]int{}
	for _, s := range mon.m.Config.Sources {
		name := s.Kind
		if seen[name]++; seen[name] > 1 {
			name = fmt.Sprintf("%s_%d", name, seen[name])
		}
		names = append(names, name)
	}
	return names
}

// start serves until the returned function is called.
func (mon *monitor) start(ctx context.Context, a *app.App, p *pawl.Pawl) (stop func(), err error) {
	if mon == nil {
		return func() {}, nil
	}
	mon.pawl = p
	mon.Watch(p)
	return a.StartAdmin(ctx, mon.m.Config, mon.m.Log, mon.status, mon.Handler(), mon.dashboard(), func(ctx context.Context) {
		if err := mon.ReportRows(ctx, mon.m.Parts.Ledger, mon.m.Log); err != nil {
			mon.m.Log.Error("the metrics about rows are missing", "error", err)
		}
	})
}

func (mon *monitor) status() (s admin.Status) {
	h := mon.pawl.Health()
	answer := h.LastAnswer
	if !answer.IsZero() { // an idle worker sends no request, so the last answer may be old
		answer = cmp.Or(h.Unanswered, time.Now())
	}
	s.CheckLoop("the worker's loop", "the ledger", h.LastTurn, answer, 0, 0)
	if !h.Listening {
		s.Unready = append(s.Unready, "a source does not listen yet")
	}
	if h.ShuttingDown {
		s.Unready = append(s.Unready, "shutting down")
	}
	return s
}
