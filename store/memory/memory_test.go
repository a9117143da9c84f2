package memory_test

import (
	"testing"

	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/memory"
	"github.com/pawlhq/pawl/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		New: func(*testing.T) storetest.Open {
			return func() (store.Store, error) { return memory.New(), nil }
		},
	})
}
