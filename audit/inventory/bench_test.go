package inventory

import (
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/audit/inventory/inventorytest"
)

const (
	benchRows  = 1_000_000
	benchParts = 10
	benchMB    = 100
)

func BenchmarkReport(b *testing.B) {
	for _, format := range formats {
		for _, order := range []string{"sorted", "shuffled"} {
			b.Run(format+"/"+order, func(b *testing.B) {
				dir := benchReport(b, format, order == "shuffled")
				debug.FreeOSMemory()
				var opening, listing time.Duration
				var disk int64
				peak := peakOf(func() {
					for b.Loop() {
						start := time.Now()
						r, err := OpenFolder(b.Context(), dir, Expect{})
						if err != nil {
							b.Fatal(err)
						}
						opening += time.Since(start)
						start = time.Now()
						n := 0
						for _, err := range r.List(b.Context(), "photos", "", "") {
							if err != nil {
								b.Fatal(err)
							}
							n++
						}
						listing += time.Since(start)
						if disk = 0; n != benchRows {
							b.Fatalf("%d objects", n)
						}
						for _, run := range r.runs {
							disk += run.size
						}
						if err := r.Close(); err != nil {
							b.Fatal(err)
						}
					}
				})
				rows := float64(b.N * benchRows)
				b.ReportMetric(rows/opening.Seconds(), "opened/s")
				b.ReportMetric(rows/listing.Seconds(), "listed/s")
				b.ReportMetric(float64(disk)/benchRows, "disk-B/row")
				b.ReportMetric(peak, "MB")
				b.ReportMetric(0, "ns/op")
				if peak > benchMB {
					b.Errorf("%.0f MB: at most %d", peak, benchMB)
				}
			})
		}
	}
}

func benchReport(b *testing.B, format string, shuffled bool) string {
	b.Helper()
	order := rand.New(rand.NewPCG(1, 1)).Perm(benchRows)
	rep := inventorytest.New(b, format, "photos", created)
	for p := range benchParts {
		lines := make([]inventorytest.Row, benchRows/benchParts)
		for i := range lines {
			n := p*len(lines) + i
			if shuffled {
				n = order[n]
			}
			lines[i] = object(fmt.Sprintf("in/%03d/2026/03/01/%08x/%d.csv", n/1000, uint32(n)*2654435761, n), n)
		}
		rep.Add(b, lines)
	}
	return rep.Unpack(b, rep.Files(b))
}

// peakOf returns by how many MB f raises the memory of the Go runtime at its peak, with garbage.
func peakOf(f func()) float64 {
	const held, released = "/memory/classes/total:bytes", "/memory/classes/heap/released:bytes"
	now := func() float64 {
		s := []metrics.Sample{{Name: held}, {Name: released}}
		metrics.Read(s)
		return float64(s[0].Value.Uint64()-s[1].Value.Uint64()) / 1e6
	}
	start, peak := now(), 0.0
	end := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
				peak = max(peak, now()-start)
			}
		}
	})
	f()
	close(end)
	wg.Wait()
	return peak
}
