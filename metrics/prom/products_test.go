package prom_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlhq/pawl/archive"
	"github.com/pawlhq/pawl/archive/archivetest"
	"github.com/pawlhq/pawl/archive/encode"
	"github.com/pawlhq/pawl/bucket/membucket"
	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/internal/virtualtime"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/metrics/prom"
	"github.com/pawlhq/pawl/store/memory"
)

func newArchive(t *testing.T, name string, stream archive.Stream) *archive.Archive {
	t.Helper()
	a, err := archive.New(archive.Config{
		Name: name, Bucket: "lake", Prefix: name + "/", Limits: archive.Limits{FlushInterval: time.Second},
		Stream: stream, Store: membucket.New(time.Now, []string{"lake"}), Registers: ledger.NewRows(memory.New()), Codec: encode.Codec{},
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func expect(t *testing.T, got, want map[string]string) {
	t.Helper()
	for series, value := range want {
		if got[series] != value {
			t.Errorf("%s is %q, want %s", series, got[series], value)
		}
	}
}

// A real archive stores three records of a stream with two shards, one of which is empty.
func TestArchiveReportsMetrics(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		stream := archivetest.NewFake(2)
		stream.Delay = time.Second
		for range 3 {
			if _, err := stream.Put(t.Context(), "shardId-000000000000", "key", []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		a := newArchive(t, "clicks", stream)
		m := prom.NewArchives("v0", []*archive.Archive{a})
		ctx, stop := context.WithCancel(t.Context())
		began, done := time.Now(), make(chan error, 1)
		go func() { done <- (&archive.Runner{Archives: []*archive.Archive{a}}).Run(ctx) }()
		defer func() {
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}()
		time.Sleep(time.Minute)
		synctest.Wait() // a shutdown changes the number of held shards
		for _, o := range []archive.Planned{{Expired: true}, {Malformed: []archive.Number{"7", "8"}}, {}} {
			o.Format = archive.GapFormat
			a.Observe("shardId-000000000000", o)
		}
		got := scrape(t, m)
		expect(t, got, map[string]string{
			`pawl_archive_objects_total{archive="clicks"}`:               "1",
			`pawl_archive_records_total{archive="clicks"}`:               "3",
			`pawl_archive_gaps_total{archive="clicks",kind="expired"}`:   "1",
			`pawl_archive_gaps_total{archive="clicks",kind="possible"}`:  "1",
			`pawl_archive_gaps_total{archive="clicks",kind="malformed"}`: "1",
			`pawl_archive_malformed_records_total{archive="clicks"}`:     "2",
			`pawl_archive_shards{archive="clicks"}`:                      "2",
			`pawl_archive_shards_held{archive="clicks"}`:                 "2",
			`pawl_archive_shards_stopped{archive="clicks"}`:              "0",
			`pawl_archive_stream_retention_seconds{archive="clicks"}`:    "86400",
			`pawl_build_info{version="v0"}`:                              "1",
			`pawl_attempts_running`:                                      "",
		})
		s := a.Status()
		if time.Since(s.LastTurn) > 5*time.Second || time.Since(s.LastRead) > 8*time.Second || got[`pawl_archive_last_read_timestamp_seconds{archive="clicks"}`] == "" {
			t.Errorf("%v after the start: %+v", time.Since(began), s)
		}
		if until := s.StoredUntil.Sub(began); until < -10*time.Minute || until > 0 || got[`pawl_archive_stored_until_timestamp_seconds{archive="clicks"}`] == "" {
			t.Errorf("stored until %v after the start", until)
		}
	})
}

func TestFilesReportMetrics(t *testing.T) {
	m := prom.NewFiles("v0")
	if got, ok := scrape(t, m)[`pawl_files{state="lost"}`]; ok {
		t.Errorf("%s lost files before the first audit", got)
	}
	m.Request("GET /v1/files/{id}", 404, time.Second)
	m.Request("", 404, time.Second)
	m.Changed(files.Lost)
	m.Audited(&files.AuditReport{Orphans: 3, Removed: 1, States: map[files.State]files.StateCount{files.Indexed: {Files: 2, Bytes: 10}}})
	expect(t, scrape(t, m), map[string]string{
		`pawl_files_requests_total{code="4xx",route="GET /v1/files/{id}"}`:    "1",
		`pawl_files_request_duration_seconds_sum{route="GET /v1/files/{id}"}`: "1",
		`pawl_files_requests_total{code="4xx",route="other"}`:                 "1",
		`pawl_files_changes_total{state="lost"}`:                              "1",
		`pawl_files_changes_total{state="expired"}`:                           "0",
		`pawl_files{state="indexed"}`:                                         "2",
		`pawl_files_bytes{state="indexed"}`:                                   "10",
		`pawl_files{state="lost"}`:                                            "0",
		`pawl_files_orphans`:                                                  "2",
		`pawl_archive_shards`:                                                 "",
	})
}

// With 20 archives, or with every route, code and state, a scrape has few series.
func TestSeriesOfProductsAreBounded(t *testing.T) {
	var all []*archive.Archive
	for i := range 20 {
		all = append(all, newArchive(t, fmt.Sprint("archive-", i), archivetest.NewFake(1)))
	}
	archives, service := prom.NewArchives("", all), prom.NewFiles("")
	for i := range 14 {
		for _, code := range []int{200, 302, 404, 500} {
			service.Request(fmt.Sprint("route ", i), code, time.Second)
		}
	}
	service.Audited(&files.AuditReport{})
	for name, n := range map[string]int{"archives": len(scrape(t, archives)), "files": len(scrape(t, service))} {
		if n < 150 || n > 400 {
			t.Errorf("%s: %d series, want 150 to 400", name, n)
		}
	}
}
