package prom_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/metrics/prom"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/memory"
	"github.com/pawlhq/pawl/store/storetest"
)

// answers is a metered store whose writes have given outcomes.
type answers struct {
	store.Store
	outcomes []store.Outcome
	err      error
	units    func(store.Unit, float64)
}

func (a *answers) OnUnits(report func(store.Unit, float64)) { a.units = report }

func (a *answers) Swap(context.Context, []store.Change) ([]store.Outcome, error) {
	a.units(store.WriteUnits, 1.5)
	return a.outcomes, a.err
}

func (a *answers) Apply(context.Context, []store.Change) ([]store.Outcome, error) {
	return a.outcomes, a.err
}

func (a *answers) Load(context.Context, []store.Key) ([]store.Record, error) { return nil, a.err }

func (a *answers) Due(context.Context, store.DueRange) ([]store.Record, error) { return nil, a.err }

func (a *answers) Scan(context.Context, store.Range) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		if yield(store.Record{}, nil) && a.err != nil {
			yield(store.Record{}, a.err)
		}
	}
}

func useStore(t *testing.T, s store.Store) {
	_, _ = s.Swap(t.Context(), nil)
	_, _ = s.Apply(t.Context(), nil)
	_, _ = s.Load(t.Context(), nil)
	_, _ = s.Due(t.Context(), store.DueRange{})
	for range s.Scan(t.Context(), store.Range{}) {
	}
}

func TestLedgerRequestsAreCounted(t *testing.T) {
	applied, refused, unclear := store.Outcome{Applied: true}, store.Outcome{Refused: true}, store.Outcome{Err: store.ErrUnclear}
	throttled := store.Outcome{Err: store.ErrThrottled}
	for _, c := range []struct {
		result, reads string
		answers
	}{
		{result: "ok", reads: "ok", answers: answers{outcomes: []store.Outcome{applied}}},
		{result: "refused", reads: "ok", answers: answers{outcomes: []store.Outcome{refused, applied}}},
		{result: "unclear", reads: "ok", answers: answers{outcomes: []store.Outcome{throttled, refused, unclear, applied}}},
		{result: "error", reads: "ok", answers: answers{outcomes: []store.Outcome{throttled, applied}}},
		{result: "error", reads: "error", answers: answers{err: errors.New("full")}},
	} {
		m := prom.New(prom.Config{})
		useStore(t, m.Store(&c.answers))
		expect(t, scrape(t, m), map[string]string{
			`pawl_ledger_requests_total{operation="swap",result="` + c.result + `"}`:  "1",
			`pawl_ledger_requests_total{operation="apply",result="` + c.result + `"}`: "1",
			`pawl_ledger_requests_total{operation="load",result="` + c.reads + `"}`:   "1",
			`pawl_ledger_requests_total{operation="due",result="` + c.reads + `"}`:    "1",
			`pawl_ledger_requests_total{operation="scan",result="` + c.reads + `"}`:   "1",
			`pawl_dynamodb_units_total{kind="write"}`:                                 "1.5",
		})
	}
}

// The store behind the wrapper passes the suite of drivers.
func TestCountedStoreConforms(t *testing.T) {
	storetest.Run(t, storetest.Harness{New: func(*testing.T) storetest.Open {
		s := prom.New(prom.Config{}).Store(memory.New())
		return func() (store.Store, error) { return s, nil }
	}})
}

type reporter struct {
	bucket.Store
	report func(bucket.Request)
}

func (r *reporter) OnRequest(report func(bucket.Request)) { r.report = report }

func TestObjectRequestsAreCounted(t *testing.T) {
	m, objects := prom.NewFiles(""), &reporter{}
	m.WatchObjects(objects)
	if got, ok := scrape(t, m)["pawl_clock_skew_seconds"]; ok {
		t.Errorf("a skew of %s before the first response", got)
	}
	objects.report(bucket.Request{Operation: "HeadObject", Status: 404, Dated: true, Skew: -1500 * time.Millisecond})
	objects.report(bucket.Request{Operation: "PutObject"})
	expect(t, scrape(t, m), map[string]string{
		`pawl_object_store_requests_total{code="4xx",operation="HeadObject"}`: "1",
		`pawl_object_store_requests_total{code="none",operation="PutObject"}`: "1",
		`pawl_clock_skew_seconds`: "-1.5",
	})
}
