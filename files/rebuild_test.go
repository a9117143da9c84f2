package files_test

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl/files"
)

// A file that was deleted long before the backup may have been undeleted after it.
func TestRebuildKeepsDeletedFiles(t *testing.T) {
	s, b := newFakeBucket(1, 0)
	now := time.Now()
	s.Now = func() time.Time { return now }
	id, _ := s.ID(orphanKey(0))
	row := files.File{ID: id, Entity: "e", Key: orphanKey(0), State: files.Deleted, DeletedAt: now.Add(-48 * time.Hour), DueAt: now}
	if _, err := s.Index.Apply(t.Context(), files.Change{Next: row, Limit: unlimited}); err != nil {
		t.Fatal(err)
	}
	for _, dryRun := range []bool{true, false} {
		if r, err := s.Rebuild(t.Context(), b.list, files.RebuildOptions{DryRun: dryRun}); err != nil || r.Kept != 1 || r.Rebuilt != 0 {
			t.Errorf("dry run %v: %+v, %v: want the deleted file kept", dryRun, r, err)
		}
	}
	for _, hours := range []int{0, 23, 25} {
		s.Now = func() time.Time { return now.Add(time.Duration(hours) * time.Hour) }
		got, err := s.Reconcile(t.Context(), id, false)
		if kept := hours < 24; err != nil || kept != (got.State == files.Deleted) {
			t.Errorf("after %d hours the file is %v, %v", hours, got.State, err)
		}
	}
}
