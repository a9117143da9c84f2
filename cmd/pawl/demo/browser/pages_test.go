package browser

import (
	"encoding/base64"
	"flag"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

var pageRows = flag.Int("pagerows", 100_000, "rows of the ledger in BenchmarkPages")

// BenchmarkPages reports the median time of each page, until its last byte, in milliseconds.
func BenchmarkPages(b *testing.B) {
	d := startRun(b, *pageRows)
	auth := map[string]string{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte("x:"+adminToken))}
	next := strings.Split(d.do(b, http.MethodGet, d.url+"/objects?pipeline=thumbnails", auth, "", http.StatusOK), `href="/objects?after=`)
	cursor, _, _ := strings.Cut(next[len(next)-1], "&")
	times := map[string][]time.Duration{}
	for b.Loop() {
		for name, path := range map[string]string{
			"overview": "/", "objects": "/objects", "page": "/objects?pipeline=thumbnails&after=" + cursor,
			"filter": "/objects?state=unreadable", "prefix": "/objects?prefix=s3://photos/in/2026/late",
			"object": objectPath(thumbnails, hostileKeys[0]), "audits": "/audits", "sources": "/sources", "configuration": "/configuration",
		} {
			began := time.Now()
			d.do(b, http.MethodGet, d.url+path, auth, "", http.StatusOK)
			times[name] = append(times[name], time.Since(began))
		}
	}
	var slowest time.Duration
	for name, all := range times {
		slices.Sort(all)
		slowest = max(slowest, all[len(all)-1])
		b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, name+"-ms")
	}
	b.ReportMetric(float64(slowest.Microseconds())/1000, "slowest-ms") // the first overview is not cached
	b.ReportMetric(0, "ns/op")
}
