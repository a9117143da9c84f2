package prom_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/archive"
	"github.com/pawlhq/pawl/archive/archivetest"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/membucket"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/internal/virtualtime"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/metrics/prom"
	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/memory"
)

var update = flag.Bool("update", false, "write the table in docs/METRICS.md")

// A real Pawl processes three objects: one succeeds, one dies, and one matches no pipeline.
func TestPawlReportsMetrics(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		objects := membucket.New(time.Now, []string{"in"})
		deliveries := &deliveries{}
		for _, key := range []string{"docs/good", "docs/bad", "other"} {
			ref := event.Object{Bucket: "in", Key: key}
			if _, err := objects.Put(t.Context(), ref, bucket.Object{Body: strings.NewReader("x"), Size: 1}, bucket.Condition{}); err != nil {
				t.Fatal(err)
			}
			deliveries.events = append(deliveries.events, event.Event{Object: ref, Kind: event.Created, Time: time.Now(), Dialect: event.MinIO})
		}
		time.Sleep(2 * time.Second) // of virtual time: the events arrive late
		m := prom.New(prom.Config{Version: "v0", Pipelines: []string{"upper"}, Slots: 16, MaxBacklogEvents: 1000})
		handle := func(_ context.Context, t *pawl.Task) error {
			time.Sleep(time.Second)
			if strings.HasSuffix(t.Object.Key, "bad") {
				return pawl.Permanent(errors.New("broken"))
			}
			return nil
		}
		p, err := pawl.New(pawl.Config{
			Ledger: memory.New(), Objects: objects, Logger: slog.New(slog.DiscardHandler), Observer: m,
			Sources:   []pawl.Source{m.Source("list", deliveries)},
			Pipelines: []pawl.Pipeline{{Name: "upper", Match: pawl.Match{Bucket: "in", Prefix: "docs/"}, Handler: pawl.HandlerFunc(handle)}},
		})
		if err != nil {
			t.Fatal(err)
		}
		m.Watch(p)
		if err := p.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		for series, want := range map[string]string{
			`pawl_source_deliveries_total{result="acknowledged",source="list"}`: "3",
			`pawl_source_events_total{source="list"}`:                           "3",
			`pawl_source_event_lag_seconds_sum{source="list"}`:                  "6",
			`pawl_events_total{pipeline="upper",verdict="raised"}`:              "2",
			`pawl_events_total{pipeline="upper",verdict="stale"}`:               "0",
			`pawl_events_unmatched_total`:                                       "1",
			`pawl_attempts_total{pipeline="upper",result="committed"}`:          "1",
			`pawl_attempts_total{pipeline="upper",result="failed"}`:             "1",
			`pawl_deaths_total{pipeline="upper"}`:                               "1",
			`pawl_attempt_duration_seconds_count{pipeline="upper"}`:             "2",
			`pawl_convergence_seconds_sum{pipeline="upper"}`:                    "3",
			`pawl_attempts_running`:                                             "0",
			`pawl_slots`:                                                        "16",
			`pawl_build_info{version="v0"}`:                                     "1",
		} {
			if got := scrape(t, m)[series]; got != want {
				t.Errorf("%s is %q, want %s", series, got, want)
			}
		}
	})
}

type deliveries struct{ events []event.Event }

func (d *deliveries) Run(ctx context.Context, sink source.Sink) error {
	var open sync.WaitGroup
	for _, e := range d.events {
		open.Add(1)
		if err := sink.Deliver(ctx, source.Delivery{Events: []event.Event{e}, Done: func(source.Outcome) { open.Done() }}); err != nil {
			return err
		}
	}
	open.Wait()
	return nil
}

// scrape returns the values of all series.
func scrape(t *testing.T, m interface{ Handler() http.Handler }) map[string]string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	all := map[string]string{}
	for line := range strings.Lines(w.Body.String()) {
		if i := strings.LastIndexByte(line, ' '); i > 0 && line[0] != '#' {
			all[line[:i]] = strings.TrimSpace(line[i+1:])
		}
	}
	return all
}

// The wrapper must keep the optional methods of a source, and have no others.
func TestSourceKeepsOptionalMethods(t *testing.T) {
	type listener interface{ Ready() <-chan struct{} }
	plain := &deliveries{}
	declarer := struct {
		*deliveries
		source.Declarer
	}{plain, nil}
	ready := readySource{plain}
	both := struct {
		readySource
		source.Declarer
	}{ready, nil}
	m := prom.New(prom.Config{})
	for i, s := range []pawl.Source{plain, declarer, ready, both} {
		_, declares := s.(source.Declarer)
		_, listens := s.(listener)
		wrapped := m.Source(fmt.Sprint(i), s)
		if _, got := wrapped.(source.Declarer); got != declares {
			t.Errorf("source %d: Declarer is %v behind the wrapper, want %v", i, got, declares)
		}
		if _, got := wrapped.(listener); got != listens {
			t.Errorf("source %d: Ready is %v behind the wrapper, want %v", i, got, listens)
		}
	}
}

type readySource struct{ *deliveries }

func (readySource) Ready() <-chan struct{} { return nil }

// Two processes share a ledger with one unsettled row. One reports it. After it ends, the other does.
func TestOneProcessReportsRows(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		records := memory.New()
		began := time.Now().UTC()
		key := ledger.RowKey{Pipeline: "upper", Bucket: "in", Key: "a"}
		row := ledger.Row{RowKey: key, Nonce: ledger.Nonce{1}, EventTime: began, CreatedAt: began, UpdatedAt: began, Want: ledger.Version{Generation: 1, Kind: event.Created}}
		if _, err := ledger.NewRows(records).Swap(t.Context(), []ledger.Change{{Key: key, Row: &row}}); err != nil {
			t.Fatal(err)
		}
		var processes [2]*prom.Metrics
		var ends [2]context.CancelFunc
		var running sync.WaitGroup
		for i := range processes {
			var ctx context.Context
			ctx, ends[i] = context.WithCancel(t.Context())
			processes[i] = prom.New(prom.Config{Pipelines: []string{"upper"}})
			running.Go(func() {
				if err := processes[i].ReportRows(ctx, records, slog.New(slog.DiscardHandler)); err != nil {
					t.Error(err)
				}
			})
		}
		const series = `pawl_rows{pipeline="upper",state="pending"}`
		reporter := func() int {
			synctest.Wait()
			who := -1
			for i, m := range processes {
				all := scrape(t, m)
				if all[series] == "" {
					continue
				}
				if who >= 0 {
					t.Error("both processes report the rows")
				}
				who = i
				if got, want := all[`pawl_rows_oldest_unsettled_timestamp_seconds{pipeline="upper"}`], fmt.Sprintf("%g", float64(began.UnixMilli())/1000); all[series] != "1" || got != want {
					t.Errorf("%s pending rows, the oldest of %s; want 1, of %s", all[series], got, want)
				}
			}
			return who
		}
		time.Sleep(3 * time.Minute)
		first := reporter()
		if first < 0 {
			t.Fatal("no process reports the rows")
		}
		ends[first]()
		time.Sleep(3 * time.Minute)
		if second := reporter(); second != 1-first {
			t.Errorf("after process %d ended, process %d reports the rows", first, second)
		}
		ends[1-first]()
		running.Wait()
	})
}

// With 20 pipelines and 4 sources, and every label in use, a scrape has at most 3,000 series.
func TestSeriesAreBounded(t *testing.T) {
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("pipeline-%d", i))
	}
	m := prom.New(prom.Config{Pipelines: names})
	for i := range 4 {
		m.Source(fmt.Sprint(i), &deliveries{})
	}
	for _, p := range names {
		key := ledger.RowKey{Pipeline: p}
		for k := engine.Died; k <= engine.AuditFailed; k++ {
			m.Observe(pawl.Notice{Kind: k, Key: key, Detail: "created", Took: 1, Behind: 1})
		}
		for _, kind := range []string{"lost creation", "lost overwrite", "lost removal", "no output", "no input"} {
			m.Observe(pawl.Notice{Kind: engine.LossFound, Key: key, Detail: kind})
		}
	}
	objects := &reporter{}
	m.WatchObjects(objects)
	for i := range 20 { // more operations than Pawl uses
		for _, status := range []int{0, 200, 302, 404, 503} {
			objects.report(bucket.Request{Operation: fmt.Sprint(i), Status: status, Dated: true})
		}
	}
	records := &answers{}
	for _, o := range []store.Outcome{{}, {Refused: true}, {Err: store.ErrUnclear}, {Err: store.ErrThrottled}} {
		records.outcomes = []store.Outcome{o}
		useStore(t, m.Store(records))
	}
	all := scrape(t, m)
	for _, result := range []string{"committed", "nothing_to_do", "uncounted", "released", "lost_lease", "abandoned"} {
		if got := all[`pawl_attempts_total{pipeline="pipeline-0",result="`+result+`"}`]; got != "1" {
			t.Errorf("%s attempts %s, want 1", got, result)
		}
	}
	n := len(all)
	t.Logf("%d series", n)
	if n < 1500 || n > 3000 {
		t.Errorf("%d series, want 1,500 to 3,000", n)
	}
}

// The next audit of the process ends the alert about withheld removals.
func TestWithheldRemovalsEndWithTheNextAudit(t *testing.T) {
	const series = `pawl_audit_removals_withheld{pipeline="upper"}`
	m := prom.New(prom.Config{Pipelines: []string{"upper"}})
	m.Observe(pawl.Notice{Kind: engine.RemovalsWithheld, Key: ledger.RowKey{Pipeline: "upper"}, N: 300})
	for _, want := range []string{"300", "0"} {
		m.Observe(pawl.Notice{Kind: engine.Audited})
		if got := scrape(t, m)[series]; got != want {
			t.Errorf("%s is %q, want %s", series, got, want)
		}
	}
	m.Observe(pawl.Notice{Kind: engine.RemovalsWithheld, Key: ledger.RowKey{Pipeline: "upper"}, N: 300})
	m.Observe(pawl.Notice{Kind: engine.Audited, Took: time.Hour})
	m.Observe(pawl.Notice{Kind: engine.LastAudit, Took: time.Minute})
	if got := scrape(t, m)[series]; got != "0" {
		t.Errorf("after an audit of another process, %s is %q", series, got)
	}
}

// An audit fails, runs again, and fails. Then an audit of this or of another process succeeds.
func TestFailedAuditIsReportedUntilAnAuditSucceeds(t *testing.T) {
	for _, success := range []pawl.Notice{{Kind: engine.Audited}, {Kind: engine.LastAudit, Took: time.Minute}} {
		m := prom.New(prom.Config{Pipelines: []string{"upper"}})
		for _, step := range []struct {
			pawl.Notice
			failures        string
			failed, running bool
		}{
			{pawl.Notice{Kind: engine.AuditRunning, N: 1}, "0", false, true},
			{pawl.Notice{Kind: engine.AuditRunning}, "0", false, false},
			{pawl.Notice{Kind: engine.AuditFailed}, "1", true, false},
			{pawl.Notice{Kind: engine.LastAudit, N: 1, Took: time.Hour}, "1", true, false}, // the one before
			{pawl.Notice{Kind: engine.AuditFailed}, "2", true, false},
			{success, "2", false, false},
		} {
			m.Observe(step.Notice)
			got := scrape(t, m)
			_, failed := got["pawl_audit_failed_timestamp_seconds"]
			_, running := got["pawl_audit_running_since_timestamp_seconds"]
			if n := got["pawl_audit_failures_total"]; n != step.failures || failed != step.failed || running != step.running {
				t.Errorf("after %+v: %s failures, failed: %v, running: %v", step.Notice, n, failed, running)
			}
		}
	}
}

// Prometheus' own rules for names and help texts.
func TestLint(t *testing.T) {
	service := prom.NewFiles("")
	service.Request("", 200, 0)
	service.Audited(&files.AuditReport{})
	for _, m := range []prometheus.Collector{prom.New(prom.Config{Pipelines: []string{"upper"}}), prom.NewArchives("", []*archive.Archive{newArchive(t, "a", archivetest.NewFake(1))}), service} {
		problems, err := testutil.CollectAndLint(m)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

// docs/METRICS.md has the table of the metrics.
func TestDocumented(t *testing.T) {
	const page = "../../docs/METRICS.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	between := regexp.MustCompile(`(?s)(<!-- metrics -->\n).*(<!-- end -->)`)
	want := between.ReplaceAllString(string(text), "${1}"+prom.Documentation()+"${2}")
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) || !between.Match(text) {
		t.Errorf("%s differs from the table of metrics: run go test ./metrics/prom -run TestDocumented -update", page)
	}
}
