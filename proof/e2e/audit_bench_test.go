//go:build unix

package e2e

import (
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sort"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pawlhq/pawl/audit"
	"github.com/pawlhq/pawl/bucket/s3bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/store/sqlite"
)

var auditKeys = flag.Int("auditkeys", 1_000_000, "keys and rows of BenchmarkAudit")

const auditMB = 100

// BenchmarkAudit compares its speed with a plain listing of the same server. It needs two cores; on a busy
// machine only cpu-ratio is meaningful.
func BenchmarkAudit(b *testing.B) {
	n := *auditKeys
	server := &listServer{n: n, at: time.Now().Add(-24 * time.Hour).UTC().Truncate(time.Second)}
	h := httptest.NewServer(server)
	b.Cleanup(h.Close)
	store, err := s3bucket.New(b.Context(), s3bucket.Config{Endpoint: h.URL, Region: "us-east-1", PathStyle: true, AccessKey: "a", SecretKey: "s"})
	if err != nil {
		b.Fatal(err)
	}
	a := newAuditor(b, h.URL, fillRows(b, server))
	for b.Loop() {
		start := cpuTime()
		bare := listBare(b, store, n)
		bareCPU := cpuTime() - start
		server.pages.Store(0)
		rise := memoryUse()
		began := time.Now()
		report, err := a.Run(b.Context(), audit.Options{SettleWindow: time.Hour})
		took, cpu, mb := time.Since(began), cpuTime()-start-bareCPU, rise()
		total := report.Total()
		if want := (audit.Counts{Listed: int64(n), Rows: int64(n), Created: int64(n)}); err != nil || total != want {
			b.Fatalf("%+v, want %+v, %v", total, want, err)
		}
		b.ReportMetric(float64(n)/took.Seconds(), "keys/s")
		b.ReportMetric(float64(n)/bare.Seconds(), "bare-keys/s")
		b.ReportMetric(bare.Seconds()/took.Seconds(), "ratio")
		b.ReportMetric(bareCPU.Seconds()/cpu.Seconds(), "cpu-ratio")
		b.ReportMetric(mb, "MB")
		b.ReportMetric(float64(server.pages.Load())/(float64(n)/1000), "requests/page")
		if mb > auditMB {
			b.Errorf("%.0f MB more than at the start, want at most %d", mb, auditMB)
		}
	}
}

// BenchmarkAuditBrake audits the same rows against an emptied bucket.
func BenchmarkAuditBrake(b *testing.B) {
	n := *auditKeys
	server := &listServer{n: n, at: time.Now().Add(-24 * time.Hour).UTC().Truncate(time.Second)}
	led := fillRows(b, server)
	h := httptest.NewServer(&listServer{})
	b.Cleanup(h.Close)
	a := newAuditor(b, h.URL, led)
	for b.Loop() {
		rise, began := memoryUse(), time.Now()
		report, err := a.Run(b.Context(), audit.Options{SettleWindow: time.Hour})
		took, mb := time.Since(began), rise()
		total := report.Total()
		if want := (audit.Counts{Rows: int64(n), Created: int64(n), Removable: int64(n), Withheld: int64(n)}); err != nil || total != want {
			b.Fatalf("%+v, want %+v, %v", total, want, err)
		}
		b.ReportMetric(float64(n)/took.Seconds(), "rows/s")
		b.ReportMetric(mb, "MB")
		if mb > auditMB {
			b.Errorf("%.0f MB more than at the start, want at most %d", mb, auditMB)
		}
	}
}

func newAuditor(b *testing.B, url string, led ledger.Store) *audit.Auditor {
	b.Helper()
	store, err := s3bucket.New(b.Context(), s3bucket.Config{Endpoint: url, Region: "us-east-1", PathStyle: true, AccessKey: "a", SecretKey: "s"})
	if err != nil {
		b.Fatal(err)
	}
	a, err := audit.New(audit.Config{
		Ledger: led, Objects: store, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Pipelines: []audit.Pipeline{{Name: "p", Bucket: inputs, Prefix: "in/", Match: func(event.Object) bool { return true }}},
	})
	if err != nil {
		b.Fatal(err)
	}
	return a
}

func listBare(b *testing.B, store audit.Listing, n int) time.Duration {
	b.Helper()
	began, got := time.Now(), 0
	for _, err := range store.List(b.Context(), inputs, "in/", "") {
		if err != nil {
			b.Fatal(err)
		}
		got++
	}
	if got != n {
		b.Fatalf("%d keys, want %d", got, n)
	}
	return time.Since(began)
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// memoryUse returns the peak growth in MB.
func memoryUse() func() float64 {
	debug.FreeOSMemory()
	used := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.Sys - m.HeapReleased
	}
	start := used()
	peak, stop, done := start, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				peak = max(peak, used())
			}
		}
	}()
	return func() float64 {
		close(stop)
		<-done
		return float64(peak-start) / 1e6
	}
}

type listServer struct {
	n     int
	at    time.Time
	pages atomic.Int64
}

func (l *listServer) key(i int) string { return fmt.Sprintf("in/2026/%02d/%08d.parquet", i*12/l.n, i) }

func (l *listServer) identity(i int) ledger.Identity {
	return ledger.Identity{ETag: fmt.Sprintf("%032x", i), ModTime: l.at, Meta: "0123456789abcdef", Size: int64(i)}
}

func (l *listServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("list-type") != "2" {
		http.Error(w, "listings only", http.StatusNotImplemented)
		return
	}
	l.pages.Add(1)
	after := max(q.Get("start-after"), q.Get("continuation-token"))
	first := sort.Search(l.n, func(i int) bool { return l.key(i) > after })
	end := min(first+1000, l.n)
	w.Header().Set("Content-Type", "application/xml")
	fmt.Fprintf(w, "%s<ListBucketResult><Name>%s</Name><EncodingType>url</EncodingType><KeyCount>%d</KeyCount><MaxKeys>1000</MaxKeys><IsTruncated>%v</IsTruncated>",
		xml.Header, inputs, end-first, end < l.n)
	if end < l.n {
		fmt.Fprintf(w, "<NextContinuationToken>%s</NextContinuationToken>", l.key(end-1))
	}
	for i := first; i < end; i++ {
		id := l.identity(i)
		fmt.Fprintf(w, `<Contents><Key>%s</Key><LastModified>%s</LastModified><ETag>&quot;%s&quot;</ETag><Size>%d</Size><StorageClass>STANDARD</StorageClass></Contents>`,
			url.QueryEscape(l.key(i)), id.ModTime.Format("2006-01-02T15:04:05.000Z"), id.ETag, id.Size)
	}
	fmt.Fprint(w, "</ListBucketResult>")
}

func fillRows(b *testing.B, l *listServer) ledger.Store {
	b.Helper()
	records, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "ledger.db"))
	if err != nil {
		b.Fatal(err)
	}
	led := ledger.NewRows(records)
	b.Cleanup(func() { _ = led.Close() })
	all := ledger.New(led)
	for from := 0; from < l.n; from += 1000 {
		var changes []ledger.Change
		for i := from; i < min(from+1000, l.n); i++ {
			v := ledger.Version{Generation: 1, Kind: event.Created, Identity: l.identity(i)}
			row := ledger.Row{
				RowKey: ledger.RowKey{Pipeline: "p", Bucket: inputs, Key: l.key(i)}, Nonce: ledger.Nonce{1}, Want: v, Have: v,
				Lease: ledger.Lease{Fence: l.at.UnixMilli()}, EventTime: l.at, CreatedTime: l.at, CreatedAt: l.at, UpdatedAt: l.at,
				History: []ledger.Entry{
					{At: l.at, What: "completed", Note: "acted"}, {At: l.at, What: "claimed", Note: "fence 1774000000000 by host/4711/0123456789abcdef"},
					{At: l.at, What: "raised", Note: "created 0055AED6DCD90281E5.0 ObjectCreated:Put"},
				},
			}
			changes = append(changes, ledger.Change{Key: row.RowKey, Row: &row})
		}
		if _, err := all.Swap(b.Context(), changes); err != nil {
			b.Fatal(err)
		}
	}
	return led
}
