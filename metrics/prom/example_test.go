package prom_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/bucket/membucket"
	"github.com/pawlhq/pawl/metrics/prom"
	"github.com/pawlhq/pawl/source/replaysource"
	"github.com/pawlhq/pawl/store/memory"
)

func Example() {
	upload := `{"account": "a", "action": "PutObject", "bucket": "photos", "object": {"key": "cat.png"}, "eventTime": "2026-01-02T03:04:05Z"}`
	replay, err := replaysource.New(replaysource.Config{Paths: []string{"-"}, Stdin: strings.NewReader(upload)})
	if err != nil {
		log.Fatal(err)
	}
	cfg := pawl.Config{
		Ledger: memory.New(), Objects: membucket.New(time.Now, []string{"photos"}), Sources: []pawl.Source{replay},
		Pipelines: []pawl.Pipeline{{
			Name: "thumbnails", Match: pawl.Match{Bucket: "photos"},
			Handler: pawl.HandlerFunc(func(context.Context, *pawl.Task) error { return nil }),
		}},
	}

	m := prom.New(prom.Config{Pipelines: []string{"thumbnails"}})
	cfg.Observer = m
	cfg.Ledger = m.Store(cfg.Ledger)
	m.WatchObjects(cfg.Objects)
	for i := range cfg.Sources {
		cfg.Sources[i] = m.Source(fmt.Sprintf("source_%d", i+1), cfg.Sources[i])
	}
	p, err := pawl.New(cfg)
	if err != nil {
		log.Fatal(err)
	}
	m.Watch(p)
	mux := http.NewServeMux()
	mux.Handle("/metrics", m.Handler())

	ctx, stop := context.WithCancel(context.Background())
	var rows sync.WaitGroup
	rows.Go(func() {
		if err := m.ReportRows(ctx, cfg.Ledger, slog.Default()); err != nil {
			log.Print(err)
		}
	})
	err = p.Run(ctx)
	stop()
	rows.Wait()
	if err != nil {
		log.Fatal(err)
	}

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "pawl_convergence_seconds_count") {
			fmt.Print(line)
		}
	}
	// Output: pawl_convergence_seconds_count{pipeline="thumbnails"} 1
}
