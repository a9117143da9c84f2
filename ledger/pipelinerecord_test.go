package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/pawlhq/pawl/internal/virtualtime"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/memory"
)

// slowPipelines holds up the writes of pipeline records until release is closed.
type slowPipelines struct {
	store.Store
	release chan struct{}

	mu     sync.Mutex
	writes int
}

func (s *slowPipelines) Swap(ctx context.Context, changes []store.Change) ([]store.Outcome, error) {
	if changes[0].Key.Space == "pipeline" {
		s.mu.Lock()
		s.writes++
		s.mu.Unlock()
		<-s.release
	}
	return s.Store.Swap(ctx, changes)
}

func insertRow(ctx context.Context, s ledger.Store, key string) error {
	k := ledger.RowKey{Pipeline: "p", Bucket: "b", Key: key}
	_, err := s.Swap(ctx, []ledger.Change{{Key: k, Row: &ledger.Row{RowKey: k, Nonce: store.NewNonce()}}})
	return err
}

func TestConcurrentInsertsWriteOnePipelineRecord(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		slow := &slowPipelines{Store: memory.New(), release: make(chan struct{})}
		s := ledger.NewRows(slow)
		var inserts sync.WaitGroup
		for i := range 100 {
			inserts.Go(func() {
				if err := insertRow(t.Context(), s, fmt.Sprint(i)); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		ctx, stop := context.WithCancelCause(t.Context())
		given := errors.New("stopped")
		stop(given)
		if err := insertRow(ctx, s, "stopped"); !errors.Is(err, store.ErrThrottled) || !errors.Is(err, given) {
			t.Errorf("the insert that was stopped while it waited: %v", err)
		}
		close(slow.release)
		inserts.Wait()
		if rows := scan(t, s, ledger.Range{}); len(rows) != 100 || slow.writes != 1 {
			t.Errorf("%d rows and %d writes of the pipeline record, want 100 and 1", len(rows), slow.writes)
		}
	})
}
