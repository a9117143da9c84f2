//go:build unix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/cmd/pawl/dashboard"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/metrics/otel"
	"github.com/pawlhq/pawl/metrics/prom"
	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/store/sqlite"
)

// BenchmarkMetrics compares the CPU time of cycles with metrics, traces or dashboards and without, in
// interleaved pairs. It reports the median of the ratios and, with 20 pairs (-benchtime 20x), its 95 % confidence
// interval.
func BenchmarkMetrics(b *testing.B) {
	b.Run("metrics", func(b *testing.B) {
		compareCPU(b, func(c *pawl.Config) {
			m := prom.New(prom.Config{Pipelines: []string{"noop"}})
			c.Observer, c.Ledger = m, m.Store(c.Ledger)
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
	b.Run("ten dashboards", func(b *testing.B) {
		compareCPU(b, func(c *pawl.Config) {
			d := &dashboards{feed: c.Sources[0].(feed), rows: ledger.NewRows(c.Ledger), rates: &dashboard.Rates{}}
			c.Sources, c.Observer = []pawl.Source{d}, d.rates
		})
	})
}

// dashboards is a feed of events during which ten clients show the overview of the ledger.
type dashboards struct {
	feed
	dashboard.Ledger
	rows  *ledger.Rows
	rates *dashboard.Rates
}

func (d *dashboards) Overview(ctx context.Context, limit int) ([]dashboard.PipelineStatus, error) {
	u, err := d.rows.Unsettled(ctx, "noop", time.Now(), limit)
	return []dashboard.PipelineStatus{{
		Pipeline: "noop", Pending: u.ByState[ledger.StatePending], Processing: u.ByState[ledger.StateProcessing],
		Truncated: u.Truncated, Oldest: u.Oldest,
	}}, err
}

func (d *dashboards) Run(ctx context.Context, sink source.Sink) (err error) {
	server := httptest.NewServer(dashboard.Handler(dashboard.Config{Ledger: d, Rates: d.rates, Logger: slog.New(slog.DiscardHandler)}))
	defer server.Close()
	ctx, stop := context.WithCancel(ctx)
	var readers errgroup.Group
	defer func() { stop(); err = errors.Join(err, readers.Wait()) }()
	for range 10 {
		readers.Go(func() error {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/events", nil)
			if err != nil {
				return err
			}
			res, err := server.Client().Do(req)
			if err != nil {
				return err
			}
			defer res.Body.Close()
			if n, _ := io.Copy(io.Discard, res.Body); n == 0 || res.StatusCode != http.StatusOK {
				return fmt.Errorf("a dashboard has %s and %d bytes", res.Status, n)
			}
			return nil
		})
	}
	return d.feed.Run(ctx, sink)
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
