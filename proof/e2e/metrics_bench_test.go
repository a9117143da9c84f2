//go:build unix

package e2e

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/metrics/otel"
	"github.com/pawlhq/pawl/metrics/prom"
	"github.com/pawlhq/pawl/store/sqlite"
)

// BenchmarkMetrics compares the CPU time of cycles with metrics or traces and without, in interleaved
// pairs. It reports the median of the ratios and, with 20 pairs (-benchtime 20x), its 95 % confidence
// interval.
func BenchmarkMetrics(b *testing.B) {
	b.Run("metrics", func(b *testing.B) {
		compareCPU(b, func(c *pawl.Config) {
			m := prom.New(prom.Config{Pipelines: []string{"noop"}})
			c.Observer = m
			c.Sources = []pawl.Source{m.Source("feed", c.Sources[0])}
		})
	})
	b.Run("traces sampled at 1 %", func(b *testing.B) {
		collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
		defer collector.Close()
		b.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
		b.Setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
		b.Setenv("OTEL_TRACES_SAMPLER_ARG", "0.01")
		tracer, err := otel.New(b.Context(), otel.Config{})
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = tracer.Close(context.Background()) }()
		compareCPU(b, func(c *pawl.Config) { c.Tracer = tracer })
	})
}

func compareCPU(b *testing.B, with func(*pawl.Config)) {
	var ratios []float64
	for b.Loop() {
		bare := cycleCPU(b)
		ratios = append(ratios, cycleCPU(b, with).Seconds()/bare.Seconds())
	}
	slices.Sort(ratios)
	n := len(ratios)
	b.ReportMetric((ratios[(n-1)/2]+ratios[n/2])/2, "median-ratio")
	b.ReportMetric(ratios[n/4], "low-ratio") // the 6th and the 15th of 20 bound the median
	b.ReportMetric(ratios[n-1-n/4], "high-ratio")
}

func cycleCPU(b *testing.B, with ...func(*pawl.Config)) time.Duration {
	b.Helper()
	records, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "cycle.db"))
	if err != nil {
		b.Fatal(err)
	}
	events := makeEvents(b)
	before := cpuTime()
	runCycle(b, records, events, with...)
	took := cpuTime() - before
	if err := records.Close(); err != nil {
		b.Fatal(err)
	}
	return took
}
