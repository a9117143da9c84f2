package sqlite_test

import (
	"context"
	"path/filepath"
	"testing"

	zombiezen "zombiezen.com/go/sqlite"

	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/sqlite"
	"github.com/pawlhq/pawl/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		Shared: true,
		New: func(t *testing.T) storetest.Open {
			path := filepath.Join(t.TempDir(), "pawl.db")
			return func() (store.Store, error) { return sqlite.Open(t.Context(), path) }
		},
		Within: func(ctx context.Context, s store.Store, f func(store.Tx) error) error {
			db := s.(*sqlite.Store)
			return db.Write(ctx, func(conn *zombiezen.Conn) error { return f(db.In(conn)) })
		},
	})
}
