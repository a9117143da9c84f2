//go:build unix

package inventory

import (
	"os"
	"testing"

	"github.com/pawlhq/pawl/audit/inventory/inventorytest"
)

// A killed process leaves no temporary files, because they have no names.
func TestVanishes(t *testing.T) {
	rep := inventorytest.New(t, formatCSV, "photos", created, []inventorytest.Row{object("a", 1)})
	r := opened(t)(OpenFolder(t.Context(), rep.Unpack(t, rep.Files(t)), Expect{}))
	if names, err := os.ReadDir(r.dir); err != nil || len(names) > 0 || len(list(t, r, "", "")) != 1 {
		t.Errorf("%v, %v", names, err)
	}
}
