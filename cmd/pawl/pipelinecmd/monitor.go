package pipelinecmd

import (
	"cmp"
	"context"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/cmd/pawl/admin"
	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/dashboard"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/metrics/alerts"
	"github.com/pawlhq/pawl/metrics/prom"
)

// monitor has the metrics of "pawl run" and reports its health.
type monitor struct {
	*prom.Metrics
	pawl   *pawl.Pawl
	m      *app.Runtime
	rates  dashboard.Rates
	alerts *alerts.Alerts // or nil
	admin  string         // address
}

// Observe implements [pawl.Observer].
func (mon *monitor) Observe(n pawl.Notice) {
	mon.Metrics.Observe(n)
	mon.rates.Observe(n)
}

// newMonitor makes the runtime report to the metrics. Without an address for them and without alerts it
// returns nil.
func newMonitor(a *app.App, m *app.Runtime) (mon *monitor, err error) {
	mon = &monitor{m: m, admin: a.AdminAddress(m.Config)}
	mon.alerts, err = app.NewAlerts(m.Config, "pipelines", ledger.NewRows(m.Ledger), m.Log, func(source string) time.Time { return mon.LastDelivery(source) })
	if err != nil || mon.alerts == nil && mon.admin == "" {
		return nil, err
	}
	names := make([]string, len(m.Parts.Pipelines))
	for i := range names {
		names[i] = m.Parts.Pipelines[i].Name
	}
	mon.Metrics = prom.New(prom.Config{
		Version: app.ThisBuild().Version, Pipelines: names, Slots: m.Config.Concurrency, MaxBacklogEvents: m.Config.MaxBacklogEvents,
	})
	m.Parts.Observer, m.Parts.Ledger = mon, mon.Store(m.Ledger)
	mon.WatchObjects(m.Objects)
	return mon, nil
}

// watchSources returns sources that count their messages.
func (mon *monitor) watchSources(sources []pawl.Source) []pawl.Source {
	if mon == nil {
		return sources
	}
	all := make([]pawl.Source, len(sources))
	for i, name := range app.SourceNames(mon.m.Config) {
		all[i] = mon.Source(name, sources[i])
	}
	return all
}

// start serves until the returned function is called.
func (mon *monitor) start(ctx context.Context, a *app.App, p *pawl.Pawl) (stop func(), err error) {
	if mon == nil {
		return func() {}, nil
	}
	mon.pawl = p
	mon.Watch(p)
	stopAdmin, err := a.StartAdmin(ctx, mon.m.Config, mon.m.Log, mon.status, mon.Handler(), mon.dashboard(), func(context.Context) {})
	if err != nil {
		return nil, err
	}
	var also []func(context.Context, map[string]ledger.Unsettled)
	publish := func(context.Context) {}
	if mon.alerts != nil {
		also, publish = append(also, mon.alerts.CheckPipelines), mon.alerts.Publish
	}
	stopRows := app.RunBeside(ctx, publish, func(ctx context.Context) {
		if err := mon.ReportRows(ctx, mon.m.Parts.Ledger, mon.m.Log, also...); err != nil {
			mon.m.Log.Error("the metrics about rows are missing", "error", err)
		}
	})
	return func() { stopRows(); stopAdmin() }, nil
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
