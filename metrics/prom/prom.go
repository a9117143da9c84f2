// Package prom collects a Pawl's metrics for Prometheus. Programs that do not import it do not
// depend on the Prometheus client.
//
//	m := prom.New(prom.Config{Pipelines: []string{"thumbnails"}})
//	cfg.Observer = m
//	cfg.Sources = []pawl.Source{m.Source("webhook", hook)}
//	p, err := pawl.New(cfg)
//	…
//	m.Watch(p)
//	http.Handle("/metrics", m.Handler())
//
// [Archives] and [Files] collect the metrics of the other products. docs/METRICS.md lists every
// metric.
package prom

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/engine"
)

// Config describes the process.
type Config struct {
	Version          string   // of the program
	Pipelines        []string // names; their series exist from the start
	Slots            int      // the configuration's Concurrency; default 16
	MaxBacklogEvents int      // default 1000
}

// Metrics collects metrics. A program that has its own registry registers it there.
type Metrics struct {
	set
	config   Config
	watched  atomic.Pointer[pawl.Pawl]
	withheld sync.Map     // pipeline to number, of the audit that ends now
	arrivals sync.Map     // source to *atomic.Int64
	ownAudit atomic.Int64 // start of this process's last audit, in Unix milliseconds; 0: none
}

var (
	_ pawl.Observer        = (*Metrics)(nil)
	_ prometheus.Collector = (*Metrics)(nil)
)

// New returns metrics without observations.
func New(c Config) *Metrics {
	c.Slots, c.MaxBacklogEvents = cmp.Or(c.Slots, 16), cmp.Or(c.MaxBacklogEvents, 1000)
	m := &Metrics{config: c, set: newSet(pipelines, c.Version)}
	m.sample = m.sampleStats
	m.counters[auditFailures].WithLabelValues()
	for _, p := range c.Pipelines {
		m.createSeries(p)
	}
	return m
}

// createSeries creates the series of a pipeline. Without it, rate() would miss a counter's first
// increase.
func (m *Metrics) createSeries(pipeline string) {
	for _, verdict := range []string{"raised", "duplicate", "stale"} {
		m.counters[events].WithLabelValues(pipeline, verdict)
	}
	for _, result := range results {
		m.counters[attempts].WithLabelValues(pipeline, result)
	}
	for _, name := range []string{takeovers, deaths, disordered, sequencerChanges, unreadable, auditRepaired} {
		m.counters[name].WithLabelValues(pipeline)
	}
	m.gauges[outage].WithLabelValues(pipeline)
}

// results has the label of each kind of notice that ends an attempt.
var results = map[engine.Kind]string{
	engine.Committed: "committed", engine.NothingToDo: "nothing_to_do", engine.AttemptFailed: "failed",
	engine.AttemptUncounted: "uncounted", engine.AttemptReleased: "released", engine.LostLease: "lost_lease",
	engine.AttemptAbandoned: "abandoned",
}

var verdicts = map[engine.Kind]string{engine.Raised: "raised", engine.Duplicate: "duplicate", engine.Stale: "stale"}

// pipelineCounters has the counter of each kind of notice that only increases one.
var pipelineCounters = map[engine.Kind]string{
	engine.TookOver: takeovers, engine.Disordered: disordered, engine.ShapeChanged: sequencerChanges,
	engine.Unreadable: unreadable, engine.LossRepaired: auditRepaired,
}

// Observe implements [pawl.Observer].
func (m *Metrics) Observe(n pawl.Notice) {
	pipeline := n.Key.Pipeline
	if result, ends := results[n.Kind]; ends {
		m.counters[attempts].WithLabelValues(pipeline, result).Inc()
		m.observeEnd(&n)
		return
	}
	if verdict, ok := verdicts[n.Kind]; ok {
		m.counters[events].WithLabelValues(pipeline, verdict).Inc()
		return
	}
	if name, ok := pipelineCounters[n.Kind]; ok {
		m.counters[name].WithLabelValues(pipeline).Inc()
		return
	}
	switch n.Kind {
	case engine.Died:
		m.counters[deaths].WithLabelValues(pipeline).Inc()
		m.counters[attempts].WithLabelValues(pipeline, "failed").Inc()
		if n.Took > 0 { // otherwise no attempt ran
			m.histograms[attemptDuration].WithLabelValues(pipeline).Observe(n.Took.Seconds())
		}
	case engine.Claimed:
		m.histograms[attemptWait].WithLabelValues(pipeline).Observe(n.Took.Seconds())
	case engine.Unmatched:
		m.counters[eventsUnmatched].WithLabelValues().Add(float64(n.N))
	case engine.ReceiverDown:
		m.gauges[outage].WithLabelValues(pipeline).Set(1)
	case engine.ReceiverUp:
		m.gauges[outage].WithLabelValues(pipeline).Set(0)
	case engine.RowsWritten:
		m.histograms[swapDuration].WithLabelValues().Observe(n.Took.Seconds())
		m.counters[ledgerRows].WithLabelValues("written").Add(float64(n.N))
	case engine.RowsRefused:
		m.counters[ledgerRows].WithLabelValues("refused").Add(float64(n.N))
	default:
		m.observeAudit(&n)
	}
}

func (m *Metrics) observeAudit(n *pawl.Notice) {
	switch n.Kind {
	case engine.LossFound:
		m.counters[auditLosses].WithLabelValues(n.Key.Pipeline, n.Detail).Inc()
	case engine.RemovalsWithheld:
		m.withheld.Store(n.Key.Pipeline, float64(n.N))
	case engine.AuditRunning:
		m.setTime(auditRunning, time.Time{})
		if n.N > 0 {
			m.setTime(auditRunning, time.Now())
		}
	case engine.AuditFailed:
		m.counters[auditFailures].WithLabelValues().Inc()
		m.setTime(auditFailed, time.Now())
	case engine.Audited:
		m.reportWithheld()
		m.setTime(auditFailed, time.Time{})
		m.gauges[auditDuration].WithLabelValues().Set(n.Took.Seconds())
		m.ownAudit.Store(time.Now().Add(-n.Took).UnixMilli())
		m.setTime(auditLast, time.Now().Add(-n.Took))
	case engine.LastAudit:
		started := time.Now().Add(-n.Took)
		if own := m.ownAudit.Load(); own > 0 && started.UnixMilli() > own+1000 {
			m.reportWithheld() // another process audits now
		}
		m.setTime(auditLast, started)
		if n.N == 0 { // the failed audit has succeeded since
			m.setTime(auditFailed, time.Time{})
		}
	}
}

// reportWithheld also resets the pipelines of which this audit withheld no removals.
func (m *Metrics) reportWithheld() {
	for _, p := range m.config.Pipelines {
		n, _ := m.withheld.LoadAndDelete(p)
		count, _ := n.(float64)
		m.gauges[auditWithheld].WithLabelValues(p).Set(count)
	}
}

func (m *Metrics) observeEnd(n *pawl.Notice) {
	pipeline := n.Key.Pipeline
	if n.Kind == engine.Committed || n.Kind == engine.AttemptFailed {
		m.histograms[attemptDuration].WithLabelValues(pipeline).Observe(n.Took.Seconds())
	}
	if n.Behind > 0 {
		m.histograms[convergence].WithLabelValues(pipeline).Observe(n.Behind.Seconds())
	}
}

// Watch makes every scrape sample the state of a Pawl.
func (m *Metrics) Watch(p *pawl.Pawl) { m.watched.Store(p) }

func (m *Metrics) sampleStats() {
	var s pawl.Stats
	if p := m.watched.Load(); p != nil {
		s = p.Stats()
	}
	for name, v := range map[string]int64{
		attemptsRunning: s.Running, slots: int64(m.config.Slots), runningBytes: s.RunningBytes,
		backlog: s.Backlog, backlogLimit: int64(m.config.MaxBacklogEvents),
	} {
		m.setGauge(name, float64(v))
	}
}
