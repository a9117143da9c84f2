package prom

import "github.com/pawlhq/pawl/archive"

// Archives collects the metrics of archives. A program that has its own registry registers it there.
type Archives struct{ set }

// NewArchives returns the metrics of archives that have not begun to run. It sets their Observe.
func NewArchives(version string, all []*archive.Archive) *Archives {
	m := &Archives{newSet(archives, version)}
	m.sample = func() {
		for _, a := range all {
			m.report(a.Name, a.Status())
		}
	}
	for _, a := range all {
		for _, name := range []string{archiveObjects, archiveRecords, archiveMalformed} {
			m.counters[name].WithLabelValues(a.Name)
		}
		for _, kind := range []string{"expired", "possible", "malformed"} {
			m.counters[archiveGaps].WithLabelValues(a.Name, kind)
		}
		a.Observe = func(_ string, o archive.Planned) { m.observe(a.Name, &o) }
	}
	return m
}

func (m *Archives) observe(name string, o *archive.Planned) {
	m.counters[archiveMalformed].WithLabelValues(name).Add(float64(len(o.Malformed)))
	kind := "possible"
	switch {
	case o.Format != archive.GapFormat:
		m.counters[archiveObjects].WithLabelValues(name).Inc()
		m.counters[archiveRecords].WithLabelValues(name).Add(float64(o.Count))
		return
	case o.Expired:
		kind = "expired"
	case len(o.Malformed) > 0:
		kind = "malformed"
	}
	m.counters[archiveGaps].WithLabelValues(name, kind).Inc()
}

func (m *Archives) report(name string, s archive.Status) {
	m.setGauge(archiveShards, float64(s.Open), name)
	m.setGauge(archiveHeld, float64(s.Held), name)
	m.setGauge(archiveStopped, float64(s.Stopped), name)
	m.setGauge(archiveRetention, s.Retention.Seconds(), name)
	m.setTime(archiveStored, s.StoredUntil, name)
	m.setTime(archiveRead, s.LastRead, name)
}
