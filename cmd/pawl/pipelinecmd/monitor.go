package pipelinecmd

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/cmd/pawl/admin"
	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/metrics/prom"
)

// monitor is the admin listener of "pawl run" and the metrics behind it.
type monitor struct {
	*prom.Metrics
	server *admin.Server
	pawl   *pawl.Pawl
	m      *app.Runtime
}

// newMonitor opens the admin listener, and makes the runtime report to the metrics. Without an
// address it returns nil.
func newMonitor(ctx context.Context, m *app.Runtime, listen string) (*monitor, error) {
	listen = cmp.Or(listen, m.Config.Admin.Listen)
	if listen == "" {
		return nil, nil
	}
	names := make([]string, len(m.Parts.Pipelines))
	for i := range names {
		names[i] = m.Parts.Pipelines[i].Name
	}
	mon := &monitor{m: m, Metrics: prom.New(prom.Config{
		Version: app.ThisBuild().Version, Pipelines: names, Slots: cmp.Or(m.Config.Concurrency, 16), MaxBacklogEvents: cmp.Or(m.Config.MaxBacklogEvents, 1000),
	})}
	m.Parts.Observer = mon
	var err error
	mon.server, err = admin.Listen(ctx, admin.Config{
		Listen: listen, Token: m.Config.Admin.Token.Reveal(), Status: mon.status, Logger: m.Log, Metrics: mon.Handler(),
	})
	return mon, err
}

// watchSources returns sources that count their messages. Two sources of a kind get different
// names.
func (mon *monitor) watchSources(sources []pawl.Source) []pawl.Source {
	if mon == nil {
		return sources
	}
	all, seen := make([]pawl.Source, len(sources)), map[string]int{}
	for i, s := range sources {
		name := mon.m.Config.Sources[i].Kind
		if seen[name]++; seen[name] > 1 {
			name = fmt.Sprintf("%s_%d", name, seen[name])
		}
		all[i] = mon.Source(name, s)
	}
	return all
}

// start serves until the returned function is called.
func (mon *monitor) start(ctx context.Context, p *pawl.Pawl) (stop func()) {
	if mon == nil {
		return func() {}
	}
	mon.pawl = p
	mon.Watch(p)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var work sync.WaitGroup
	work.Go(func() {
		if err := mon.server.Serve(ctx); err != nil {
			mon.m.Log.Error("the admin listener failed; processing continues", "error", err)
		}
	})
	work.Go(func() {
		if err := mon.ReportRows(ctx, mon.m.Ledger, mon.m.Log); err != nil {
			mon.m.Log.Error("the metrics about rows are missing", "error", err)
		}
	})
	mon.m.Log.Info("admin listener", "address", mon.server.Addr(), "paths", "/livez /readyz /metrics")
	return func() { cancel(); work.Wait() }
}

// silence is the time after which a probe fails, if the worker's loop has not run or the ledger has
// not answered.
const silence = 30 * time.Second

func (mon *monitor) status() (s admin.Status) {
	h, sweep := mon.pawl.Health(), time.Duration(mon.m.Config.SweepInterval)
	switch {
	case h.LastTurn.IsZero():
		s.Unready = append(s.Unready, "starting")
	case time.Since(h.LastTurn) > silence:
		s.Dead = append(s.Dead, "the worker's loop has been blocked for "+since(h.LastTurn))
	case h.LastAnswer.IsZero():
		s.Unready = append(s.Unready, "the ledger has not answered yet")
	case time.Since(h.LastAnswer) > max(silence, 3*sweep):
		s.Unready = append(s.Unready, "the ledger has not answered for "+since(h.LastAnswer))
	}
	if !h.Listening {
		s.Unready = append(s.Unready, "a source does not listen yet")
	}
	if h.ShuttingDown {
		s.Unready = append(s.Unready, "shutting down")
	}
	return s
}

func since(t time.Time) string { return time.Since(t).Round(time.Second).String() }
