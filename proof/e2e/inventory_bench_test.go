package e2e

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/pawlhq/pawl/audit"
	"github.com/pawlhq/pawl/audit/inventory"
	"github.com/pawlhq/pawl/audit/inventory/inventorytest"
	"github.com/pawlhq/pawl/bucket/membucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// BenchmarkAuditInventory compares its speed with reading the report and the rows without comparing them.
func BenchmarkAuditInventory(b *testing.B) {
	l := &listServer{n: *auditKeys, at: time.Now().Add(-24 * time.Hour).UTC().Truncate(time.Second)}
	led := fillRows(b, l)
	a, err := audit.New(audit.Config{
		Ledger: led, Objects: membucket.New(time.Now, []string{inputs}), Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Pipelines: []audit.Pipeline{{Name: "p", Bucket: inputs, Prefix: "in/", Match: func(event.Object) bool { return true }}},
	})
	if err != nil {
		b.Fatal(err)
	}
	for _, format := range []string{inventorytest.CSV, inventorytest.Parquet} {
		b.Run(format, func(b *testing.B) {
			dir := writeListing(b, l, format)
			for b.Loop() {
				rise := memoryUse()
				began := time.Now()
				r, err := inventory.OpenFolder(b.Context(), dir, inventory.Expect{Bucket: inputs})
				if err != nil {
					b.Fatal(err)
				}
				opened := time.Since(began)
				bare := listBare(b, r, l.n) + scanBare(b, led, l.n)
				began = time.Now()
				report, err := a.Run(b.Context(), audit.Options{SettleWindow: time.Hour, Listing: r, ListingName: format, AsOf: r.Created})
				took, mb := time.Since(began), rise()
				total := report.Total()
				if want := (audit.Counts{Listed: int64(l.n), Rows: int64(l.n), Created: int64(l.n)}); err != nil || total != want {
					b.Fatalf("%+v, want %+v, %v", total, want, err)
				}
				if err := r.Close(); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(l.n)/opened.Seconds(), "opened-keys/s")
				b.ReportMetric(float64(l.n)/(opened+bare).Seconds(), "bare-keys/s")
				b.ReportMetric(float64(l.n)/(opened+took).Seconds(), "keys/s")
				b.ReportMetric((opened+bare).Seconds()/(opened+took).Seconds(), "ratio")
				b.ReportMetric(mb, "MB")
				if mb > auditMB {
					b.Errorf("%.0f MB more than at the start, want at most %d", mb, auditMB)
				}
			}
		})
	}
}

func scanBare(b *testing.B, led ledger.Store, n int) time.Duration {
	b.Helper()
	began, got := time.Now(), 0
	for _, err := range led.Scan(b.Context(), ledger.Range{}) {
		if err != nil {
			b.Fatal(err)
		}
		got++
	}
	if got != n {
		b.Fatalf("%d rows, want %d", got, n)
	}
	return time.Since(began)
}

func writeListing(b *testing.B, l *listServer, format string) string {
	b.Helper()
	rep := inventorytest.New(b, format, inputs, time.Now())
	for from := 0; from < l.n; from += 100_000 {
		var rows []inventorytest.Row
		for i := from; i < min(from+100_000, l.n); i++ {
			id := l.identity(i)
			rows = append(rows, inventorytest.Row{Bucket: inputs, Key: l.key(i), ETag: id.ETag, Size: id.Size, Modified: id.ModTime})
		}
		rep.Add(b, rows)
	}
	return rep.Unpack(b, rep.Files(b))
}
