package webhooksource_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/source/webhooksource"
)

func BenchmarkPost(b *testing.B) {
	b.Run("webhook", func(b *testing.B) {
		e := serve(b, webhooksource.Config{Token: "Bearer t0ken"}, ackAll{})
		benchmarkPost(b, e.url)
	})
	b.Run("bare", func(b *testing.B) {
		s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
		}))
		defer s.Close()
		benchmarkPost(b, s.URL)
	})
}

func benchmarkPost(b *testing.B, url string) {
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	client := &http.Client{Transport: transport}
	defer transport.CloseIdleConnections()
	b.SetParallelism(8)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(payload))
			if err != nil {
				b.Error(err)
				return
			}
			req.Header.Set("Authorization", "Bearer t0ken")
			resp, err := client.Do(req)
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				b.Errorf("answered %d", resp.StatusCode)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "posts/s")
}
