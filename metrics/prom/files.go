package prom

import (
	"strconv"
	"time"

	"github.com/pawlhq/pawl/files"
)

// Files collects the metrics of a files service. It is the Observer of a server. A program that has
// its own registry registers it there.
type Files struct{ set }

// NewFiles returns metrics without observations.
func NewFiles(version string) *Files {
	m := &Files{newSet(fileService, version)}
	for s := files.Indexed; s <= files.Expired; s++ {
		m.counters[filesChanges].WithLabelValues(s.String())
	}
	return m
}

// Request counts a request. An empty route means that no path matches.
func (m *Files) Request(route string, status int, took time.Duration) {
	if route == "" {
		route = "other"
	}
	m.counters[filesRequests].WithLabelValues(route, strconv.Itoa(status/100)+"xx").Inc()
	m.histograms[filesDuration].WithLabelValues(route).Observe(took.Seconds())
}

// Changed counts a change by a reconciliation.
func (m *Files) Changed(to files.State) { m.counters[filesChanges].WithLabelValues(to.String()).Inc() }

// Audited reports the counts of a complete audit.
func (m *Files) Audited(r *files.AuditReport) {
	for s := files.Pending; s <= files.Expired; s++ {
		m.setGauge(filesCount, float64(r.States[s].Files), s.String())
		m.setGauge(filesBytes, float64(r.States[s].Bytes), s.String())
	}
	m.setGauge(filesOrphans, float64(r.Orphans-r.Removed))
	m.setTime(filesAudit, time.Now())
}
