package sqliteindex_test

import (
	"path/filepath"
	"testing"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/files/indextest"
	"github.com/pawlhq/pawl/files/sqliteindex"
)

func TestIndex(t *testing.T) {
	indextest.Run(t, func(t *testing.T) files.Index {
		x, err := sqliteindex.Open(t.Context(), filepath.Join(t.TempDir(), "files.db"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := x.Close(); err != nil {
				t.Error(err)
			}
		})
		return x
	})
}
