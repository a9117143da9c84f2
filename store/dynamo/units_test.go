package dynamo_test

import (
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store"
)

func TestUnitsAreReported(t *testing.T) {
	t.Parallel()
	server := servertest.DynamoDB(t)
	s := openTable(t, server.NewTable())
	var mu sync.Mutex
	used := map[store.Unit]float64{}
	s.OnUnits(func(kind store.Unit, units float64) {
		mu.Lock()
		defer mu.Unlock()
		used[kind] += units
	})
	one, two := insert("one"), insert("two")
	one.Next.Due = time.Unix(1, 0)
	steps := []struct {
		name string
		kind store.Unit
		do   func() error
	}{
		{"swap", store.WriteUnits, func() error { _, err := s.Swap(t.Context(), []store.Change{one}); return err }},
		{"apply", store.WriteUnits, func() error { _, err := s.Apply(t.Context(), []store.Change{two}); return err }},
		{"load", store.ReadUnits, func() error { _, err := s.Load(t.Context(), []store.Key{one.Key}); return err }},
		{"due", store.ReadUnits, func() error {
			_, err := s.Due(t.Context(), store.DueRange{Space: one.Key.Space, Before: time.Now(), Limit: 1})
			return err
		}},
		{"scan", store.ReadUnits, func() (err error) {
			for _, err = range s.Scan(t.Context(), store.Range{Space: one.Key.Space}) {
			}
			return err
		}},
		{"delete", store.WriteUnits, func() error {
			_, err := s.Swap(t.Context(), []store.Change{{Key: one.Key, Expect: one.Next.Nonce}})
			return err
		}},
	}
	for _, step := range steps {
		clear(used)
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if len(used) != 1 || used[step.kind] <= 0 {
			t.Errorf("%s reported %v units, want %s units", step.name, used, step.kind)
		}
	}
}
