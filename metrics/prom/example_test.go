package prom_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"sync"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/metrics/prom"
)

func Example() {
	var cfg pawl.Config // with a ledger, objects, sources and pipelines

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
	http.Handle("/metrics", m.Handler())

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
}
