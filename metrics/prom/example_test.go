package prom_test

import (
	"context"
	"log"
	"net/http"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/metrics/prom"
)

func Example() {
	var cfg pawl.Config // with a ledger, objects, sources and pipelines

	m := prom.New(prom.Config{Pipelines: []string{"thumbnails"}})
	cfg.Observer = m
	for i := range cfg.Sources {
		cfg.Sources[i] = m.Source("webhook", cfg.Sources[i])
	}
	p, err := pawl.New(cfg)
	if err != nil {
		log.Fatal(err)
	}
	m.Watch(p)
	http.Handle("/metrics", m.Handler())
	if err := p.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
