package prom

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/store"
)

// WatchObjects counts the requests of an object store that is a [bucket.Reporter]. Call it
// while no request runs.
func (s *set) WatchObjects(objects bucket.Store) {
	r, ok := objects.(bucket.Reporter)
	if !ok {
		return
	}
	r.OnRequest(func(r bucket.Request) {
		code := "none"
		if r.Status > 0 {
			code = strconv.Itoa(r.Status/100) + "xx"
		}
		s.counters[objectRequests].WithLabelValues(r.Operation, code).Inc()
		if r.Dated {
			s.setGauge(clockSkew, r.Skew.Seconds())
		}
	})
}

// Store returns a store that counts the requests to records. Call it while no request runs.
func (s *set) Store(records store.Store) store.Store {
	if m, ok := records.(store.Metered); ok {
		m.OnUnits(func(kind store.Unit, units float64) { s.counters[dynamoUnits].WithLabelValues(string(kind)).Add(units) })
	}
	return &countedStore{records, s}
}

type countedStore struct {
	store.Store
	set *set
}

func (c *countedStore) count(operation string, began time.Time, outcomes []store.Outcome, err error) {
	refused := false
	for i := range outcomes {
		refused = refused || outcomes[i].Refused
		if e := outcomes[i].Err; err == nil || errors.Is(e, store.ErrUnclear) {
			err = e
		}
	}
	result := "ok"
	switch {
	case errors.Is(err, store.ErrUnclear):
		result = "unclear"
	case err != nil:
		result = "error"
	case refused:
		result = "refused"
	}
	c.set.counters[ledgerRequests].WithLabelValues(operation, result).Inc()
	c.set.counters[ledgerSeconds].WithLabelValues(operation).Add(time.Since(began).Seconds())
}

// Swap implements [store.Store].
func (c *countedStore) Swap(ctx context.Context, changes []store.Change) ([]store.Outcome, error) {
	began := time.Now()
	outcomes, err := c.Store.Swap(ctx, changes)
	c.count("swap", began, outcomes, err)
	return outcomes, err
}

// Apply implements [store.Store].
func (c *countedStore) Apply(ctx context.Context, changes []store.Change) ([]store.Outcome, error) {
	began := time.Now()
	outcomes, err := c.Store.Apply(ctx, changes)
	c.count("apply", began, outcomes, err)
	return outcomes, err
}

// Load implements [store.Store].
func (c *countedStore) Load(ctx context.Context, keys []store.Key) ([]store.Record, error) {
	began := time.Now()
	found, err := c.Store.Load(ctx, keys)
	c.count("load", began, nil, err)
	return found, err
}

// Due implements [store.Store].
func (c *countedStore) Due(ctx context.Context, r store.DueRange) ([]store.Record, error) {
	began := time.Now()
	found, err := c.Store.Due(ctx, r)
	c.count("due", began, nil, err)
	return found, err
}

// Scan implements [store.Store].
func (c *countedStore) Scan(ctx context.Context, r store.Range) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		began := time.Now()
		var failed error
		defer func() { c.count("scan", began, nil, failed) }()
		for one, err := range c.Store.Scan(ctx, r) {
			if failed = err; !yield(one, err) {
				return
			}
		}
	}
}
