package prom

import (
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlhq/pawl"
)

// kind is the type of a metric.
type kind string

const (
	counter   kind = "counter"
	gauge     kind = "gauge"
	histogram kind = "histogram"
)

// metric is one row of the table.
type metric struct {
	name    string
	kind    kind
	labels  []string
	help    string
	buckets []float64                            // of a histogram
	sample  func(s *pawl.Stats, c *Config) int64 // value of a gauge at a scrape; nil: set by observations
}

// Names of metrics.
const (
	sourceDeliveries   = "pawl_source_deliveries_total"
	sourceRejected     = "pawl_source_rejected_total"
	sourceEvents       = "pawl_source_events_total"
	sourceLag          = "pawl_source_event_lag_seconds"
	sourceLastDelivery = "pawl_source_last_delivery_timestamp_seconds"

	events           = "pawl_events_total"
	eventsUnmatched  = "pawl_events_unmatched_total"
	attempts         = "pawl_attempts_total"
	attemptDuration  = "pawl_attempt_duration_seconds"
	attemptWait      = "pawl_attempt_wait_seconds"
	convergence      = "pawl_convergence_seconds"
	takeovers        = "pawl_takeovers_total"
	deaths           = "pawl_deaths_total"
	outage           = "pawl_outage"
	disordered       = "pawl_disordered_events_total"
	sequencerChanges = "pawl_sequencer_changes_total"
	unreadable       = "pawl_unreadable_rows_total"

	attemptsRunning = "pawl_attempts_running"
	runningBytes    = "pawl_attempts_running_bytes"
	backlog         = "pawl_backlog_events"
	backlogLimit    = "pawl_backlog_events_limit"
	slots           = "pawl_slots"

	rows          = "pawl_rows"
	rowsOldest    = "pawl_rows_oldest_unsettled_timestamp_seconds"
	rowsTruncated = "pawl_rows_truncated"
	rowsRead      = "pawl_rows_last_read_timestamp_seconds"

	swapDuration = "pawl_ledger_swap_duration_seconds"
	ledgerRows   = "pawl_ledger_rows_total"

	auditLast     = "pawl_audit_last_success_timestamp_seconds"
	auditDuration = "pawl_audit_duration_seconds"
	auditLosses   = "pawl_audit_losses_total"
	auditRepaired = "pawl_audit_repaired_total"
	auditWithheld = "pawl_audit_removals_withheld"

	buildInfo = "pawl_build_info"
)

// seconds are the bounds of durations, from a quick action to an hour.
var seconds = []float64{.005, .025, .1, .25, 1, 2.5, 10, 30, 60, 300, 900, 3600}

// table has every metric. The tests compare docs/METRICS.md with it.
var table = []metric{
	{name: sourceDeliveries, kind: counter, labels: []string{"source", "result"}, help: "Messages by result: acknowledged, returned (the source delivers it again), or refused (not accepted, for example at shutdown)."},
	{name: sourceRejected, kind: counter, labels: []string{"source", "reason"}, help: "Messages that the source rejected: unauthorized (no valid token or signature), or unreadable."},
	{name: sourceEvents, kind: counter, labels: []string{"source"}, help: "Events in the messages of a source."},
	{name: sourceLag, kind: histogram, labels: []string{"source"}, help: "Time from an event until its message arrived.", buckets: seconds},
	{name: sourceLastDelivery, kind: gauge, labels: []string{"source"}, help: "Time of the last message; the start of the process until the first message."},

	{name: events, kind: counter, labels: []string{"pipeline", "verdict"}, help: "Events by the ledger's decision: raised (news), duplicate, or stale (older than the wanted version)."},
	{name: eventsUnmatched, kind: counter, help: "Events that match no pipeline."},
	{name: attempts, kind: counter, labels: []string{"pipeline", "result"}, help: "Attempts by result: committed, nothing_to_do, failed, uncounted (failed because of an outage), released (at shutdown), or lost_lease. Failed includes the last attempt of a dead object."},
	{name: attemptDuration, kind: histogram, labels: []string{"pipeline"}, help: "Duration of attempts that committed or failed.", buckets: seconds},
	{name: attemptWait, kind: histogram, labels: []string{"pipeline"}, help: "Time for which an object waited for its attempt in this process.", buckets: seconds},
	{name: convergence, kind: histogram, labels: []string{"pipeline"}, help: "Time from the newest event of an object until its effect was committed. It is the service level that users notice.", buckets: seconds},
	{name: takeovers, kind: counter, labels: []string{"pipeline"}, help: "Attempts that took over an expired lease, because a process crashed or was frozen."},
	{name: deaths, kind: counter, labels: []string{"pipeline"}, help: "Objects that became dead. A death may count twice."},
	{name: outage, kind: gauge, labels: []string{"pipeline"}, help: "1 while the receiver of a pipeline is down, otherwise 0."},
	{name: disordered, kind: counter, labels: []string{"pipeline"}, help: "Events ignored as stale although their time was newer. The store's sequencer may have gone back."},
	{name: sequencerChanges, kind: counter, labels: []string{"pipeline"}, help: "Sequencers whose format differs from the one before."},
	{name: unreadable, kind: counter, labels: []string{"pipeline"}, help: "Reports of rows that this version cannot read. Their objects wait."},

	{name: attemptsRunning, kind: gauge, help: "Attempts that run now: slots in use.", sample: func(s *pawl.Stats, _ *Config) int64 { return s.Running }},
	{name: slots, kind: gauge, help: "Slots of the process that pipelines share.", sample: func(_ *pawl.Stats, c *Config) int64 { return int64(c.Slots) }},
	{name: runningBytes, kind: gauge, help: "Total size of the objects of these attempts.", sample: func(s *pawl.Stats, _ *Config) int64 { return s.RunningBytes }},
	{name: backlog, kind: gauge, help: "Unfinished events in memory.", sample: func(s *pawl.Stats, _ *Config) int64 { return s.Backlog }},
	{name: backlogLimit, kind: gauge, help: "Limit of unfinished events. Sources wait when it is reached.", sample: func(_ *pawl.Stats, c *Config) int64 { return int64(c.MaxBacklogEvents) }},

	{name: rows, kind: gauge, labels: []string{"pipeline", "state"}, help: "Rows of the ledger by state: pending, processing, stuck (expired lease), or failed (backing off). A single process of a ledger reports them, once a minute."},
	{name: rowsOldest, kind: gauge, labels: []string{"pipeline"}, help: "Event time of the oldest row that is neither settled nor dead. Absent if there is none."},
	{name: rowsTruncated, kind: gauge, labels: []string{"pipeline"}, help: "1 if there were more than 10,000 rows, so that pawl_rows is too low."},
	{name: rowsRead, kind: gauge, help: "Time at which this process last read the rows. Absent in processes that do not."},

	{name: swapDuration, kind: histogram, help: "Duration of a batch of conditional writes to the ledger.", buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}},
	{name: ledgerRows, kind: counter, labels: []string{"result"}, help: "Conditional writes of rows: written or refused."},

	{name: auditLast, kind: gauge, help: "Time of the last completed audit by any process, as far as this process knows."},
	{name: auditDuration, kind: gauge, help: "Duration of the last audit of this process."},
	{name: auditLosses, kind: counter, labels: []string{"pipeline", "kind"}, help: "Losses that audits of this process found, by kind."},
	{name: auditRepaired, kind: counter, labels: []string{"pipeline"}, help: "Losses that audits of this process wrote to the ledger."},
	{name: auditWithheld, kind: gauge, labels: []string{"pipeline"}, help: "Removals that the last audit of this process withheld because there were too many."},

	{name: buildInfo, kind: gauge, labels: []string{"version"}, help: "Always 1. The label has the version."},
}

// set holds the metrics, and finds them by name.
type set struct {
	all        []prometheus.Collector
	counters   map[string]*prometheus.CounterVec
	gauges     map[string]*prometheus.GaugeVec
	histograms map[string]*prometheus.HistogramVec
}

func (m *Metrics) create() {
	m.set = set{
		counters: map[string]*prometheus.CounterVec{}, gauges: map[string]*prometheus.GaugeVec{},
		histograms: map[string]*prometheus.HistogramVec{},
	}
	for i := range table {
		m.all = append(m.all, m.collector(&table[i]))
	}
}

func (m *Metrics) collector(t *metric) prometheus.Collector {
	switch {
	case t.kind == counter:
		m.counters[t.name] = prometheus.NewCounterVec(prometheus.CounterOpts{Name: t.name, Help: t.help}, t.labels)
		return m.counters[t.name]
	case t.kind == histogram:
		m.histograms[t.name] = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: t.name, Help: t.help, Buckets: t.buckets}, t.labels)
		return m.histograms[t.name]
	case t.sample != nil:
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: t.name, Help: t.help}, func() float64 { return float64(t.sample(m.stats(), &m.config)) })
	}
	m.gauges[t.name] = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: t.name, Help: t.help}, t.labels)
	return m.gauges[t.name]
}

// Documentation returns the table of all metrics in Markdown.
func Documentation() string {
	var b strings.Builder
	b.WriteString("| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for i := range table {
		m := &table[i]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.name, m.kind, strings.Join(m.labels, ", "), m.help)
	}
	return b.String()
}
