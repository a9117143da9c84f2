package prom

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/source"
)

// Source returns a source that counts the deliveries of s under a name, which must be unique.
func (m *Metrics) Source(name string, s pawl.Source) pawl.Source {
	c := &countedSource{
		Source:       s,
		events:       m.counters[sourceEvents].WithLabelValues(name),
		acknowledged: m.counters[sourceDeliveries].WithLabelValues(name, "acknowledged"),
		returned:     m.counters[sourceDeliveries].WithLabelValues(name, "returned"),
		refused:      m.counters[sourceDeliveries].WithLabelValues(name, "refused"),
		lag:          m.histograms[sourceLag].WithLabelValues(name),
		last:         m.gauges[sourceLastDelivery].WithLabelValues(name),
		arrival:      m.arrival(name),
	}
	c.last.Set(unix(time.Now()))
	if r, ok := s.(source.Rejecter); ok {
		rejected := m.counters[sourceRejected].MustCurryWith(prometheus.Labels{"source": name})
		for _, reason := range []source.Rejection{source.Unauthorized, source.Unreadable} {
			rejected.WithLabelValues(string(reason)) // the series exists from the start
		}
		r.OnReject(func(reason source.Rejection) { rejected.WithLabelValues(string(reason)).Inc() })
	}
	// If s declares its dialect, or reports when it listens, the returned source must do so as well.
	declarer, declares := s.(source.Declarer)
	listener, listens := s.(listener)
	switch {
	case declares && listens:
		return struct {
			*countedSource
			source.Declarer
			readyOnly
		}{c, declarer, readyOnly{listener}}
	case declares:
		return struct {
			*countedSource
			source.Declarer
		}{c, declarer}
	case listens:
		return struct {
			*countedSource
			readyOnly
		}{c, readyOnly{listener}}
	}
	return c
}

// SourceValues returns the counters and gauges of a source by name, without the prefix "pawl_source_" and
// followed by the values of further labels, for example "deliveries_total refused".
func (m *Metrics) SourceValues(source string) (map[string]float64, error) {
	r := prometheus.NewRegistry()
	r.MustRegister(m)
	families, err := r.Gather()
	values := map[string]float64{}
	for _, f := range families {
		name, ours := strings.CutPrefix(f.GetName(), "pawl_source_")
		for _, one := range f.GetMetric() {
			key, found := name, false
			for _, l := range one.GetLabel() {
				if l.GetName() != "source" {
					key += " " + l.GetValue()
				} else if l.GetValue() == source {
					found = true
				}
			}
			if ours && found {
				values[key] = one.GetCounter().GetValue() + one.GetGauge().GetValue()
			}
		}
	}
	return values, err
}

type listener interface{ Ready() <-chan struct{} }

type readyOnly struct{ of listener }

func (r readyOnly) Ready() <-chan struct{} { return r.of.Ready() }

type countedSource struct {
	pawl.Source
	events, acknowledged, returned, refused prometheus.Counter
	lag                                     prometheus.Observer
	last                                    prometheus.Gauge
	arrival                                 *atomic.Int64 // of the last delivery, in Unix milliseconds; 0: none
}

// LastDelivery returns the time of the last delivery of a source, or the zero time if there was none.
func (m *Metrics) LastDelivery(source string) time.Time {
	if ms := m.arrival(source).Load(); ms > 0 {
		return time.UnixMilli(ms)
	}
	return time.Time{}
}

func (m *Metrics) arrival(source string) *atomic.Int64 {
	at, _ := m.arrivals.LoadOrStore(source, &atomic.Int64{})
	return at.(*atomic.Int64)
}

// Run implements [pawl.Source].
func (c *countedSource) Run(ctx context.Context, sink source.Sink) error {
	return c.Source.Run(ctx, countedSink{c, sink})
}

type countedSink struct {
	*countedSource
	sink source.Sink
}

// Deliver implements [source.Sink].
func (s countedSink) Deliver(ctx context.Context, d source.Delivery) error {
	events, arrival := d.Events, s.arrived()
	return s.accepted(events, arrival, s.sink.Deliver(ctx, s.counted(d)))
}

// TryDeliver implements [source.Sink].
func (s countedSink) TryDeliver(d source.Delivery) error {
	events, arrival := d.Events, s.arrived()
	return s.accepted(events, arrival, s.sink.TryDeliver(s.counted(d)))
}

func (s countedSink) counted(d source.Delivery) source.Delivery {
	done := d.Done
	d.Done = func(o source.Outcome) {
		if o.Ack {
			s.acknowledged.Inc()
		} else {
			s.returned.Inc()
		}
		done(o)
	}
	return d
}

func (s countedSink) arrived() time.Time {
	now := time.Now()
	s.last.Set(unix(now))
	s.arrival.Store(now.UnixMilli())
	return now
}

func (s countedSink) accepted(events []event.Event, arrival time.Time, err error) error {
	if err != nil {
		s.refused.Inc()
		return err
	}
	s.events.Add(float64(len(events)))
	for i := range events {
		if t := events[i].Time; !t.IsZero() {
			s.lag.Observe(max(0, arrival.Sub(t).Seconds()))
		}
	}
	return nil
}
