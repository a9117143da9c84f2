package prom

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// set holds the metrics of a product, and finds them by name.
type set struct {
	all        []prometheus.Collector
	counters   map[string]*prometheus.CounterVec
	gauges     map[string]*prometheus.GaugeVec
	histograms map[string]*prometheus.HistogramVec
	sample     func() // sets gauges at a scrape; optional
}

func newSet(p product, version string) set {
	s := set{
		counters: map[string]*prometheus.CounterVec{}, gauges: map[string]*prometheus.GaugeVec{},
		histograms: map[string]*prometheus.HistogramVec{},
	}
	for i := range table {
		if t := &table[i]; t.product == p || t.product == anyProduct {
			s.all = append(s.all, s.collector(t))
		}
	}
	s.gauges[buildInfo].WithLabelValues(version).Set(1)
	return s
}

func (s *set) collector(t *metric) prometheus.Collector {
	switch t.kind {
	case counter:
		s.counters[t.name] = prometheus.NewCounterVec(prometheus.CounterOpts{Name: t.name, Help: t.help}, t.labels)
		return s.counters[t.name]
	case histogram:
		s.histograms[t.name] = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: t.name, Help: t.help, Buckets: t.buckets}, t.labels)
		return s.histograms[t.name]
	}
	s.gauges[t.name] = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: t.name, Help: t.help}, t.labels)
	return s.gauges[t.name]
}

// Handler serves these metrics and those of the Go runtime and of the process.
func (s *set) Handler() http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(s, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{MaxRequestsInFlight: 8})
}

// Describe implements [prometheus.Collector].
func (s *set) Describe(out chan<- *prometheus.Desc) {
	for _, c := range s.all {
		c.Describe(out)
	}
}

// Collect implements [prometheus.Collector].
func (s *set) Collect(out chan<- prometheus.Metric) {
	if s.sample != nil {
		s.sample()
	}
	for _, c := range s.all {
		c.Collect(out)
	}
}

func (s *set) setGauge(name string, v float64, labels ...string) {
	s.gauges[name].WithLabelValues(labels...).Set(v)
}

// setTime removes the series if t is zero.
func (s *set) setTime(name string, t time.Time, labels ...string) {
	if t.IsZero() {
		s.gauges[name].DeleteLabelValues(labels...)
		return
	}
	s.setGauge(name, unix(t), labels...)
}

func unix(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
