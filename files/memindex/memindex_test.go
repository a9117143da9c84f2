package memindex_test

import (
	"testing"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/files/indextest"
	"github.com/pawlhq/pawl/files/memindex"
)

func TestIndex(t *testing.T) {
	indextest.Run(t, func(*testing.T) files.Index { return memindex.New() })
}
