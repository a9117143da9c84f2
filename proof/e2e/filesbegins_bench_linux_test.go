package e2e

import (
	crand "crypto/rand"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/proof/servertest"
)

// Uploads begin in one entity, in 1,000, and in one through two indexes over one database.
func BenchmarkFilesBegins(b *testing.B) {
	for _, database := range []string{"sqlite", "postgres"} {
		for _, c := range []struct {
			name             string
			entities, places int
		}{{"one", 1, 1}, {"thousand", 1000, 1}, {"two-places", 1, 2}} {
			b.Run(database+"/"+c.name, func(b *testing.B) {
				at := filepath.Join(b.TempDir(), "files.db")
				if database == "postgres" {
					at = servertest.Postgres(b, "fsync=on").URL
				}
				beginAll(b, at, c.entities, c.places)
			})
		}
	}
}

func beginAll(b *testing.B, at string, entities, places int) {
	var services []*files.Service
	for range places {
		index := openBenchIndex(b, at)
		services = append(services, &files.Service{Index: index, Objects: &beginObjects{}, Times: files.DefaultTimes(), Prefix: "files/"})
	}
	var n atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	began := time.Now()
	for client := range beginClients {
		wg.Go(func() {
			for i := n.Add(1); i <= int64(b.N); i = n.Add(1) {
				_, _, err := services[client%places].Upload(b.Context(), fmt.Sprint("entity-", i%int64(entities)), crand.Text(), rowPromise)
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "begins/s")
	b.ReportMetric(0, "ns/op")
}

func openBenchIndex(b *testing.B, at string) *files.Index {
	b.Helper()
	records, err := openRecords(b.Context(), at)
	if err != nil {
		b.Fatal(err)
	}
	index := files.NewIndex(records)
	b.Cleanup(func() { _ = index.Close() })
	return index
}
