package files_test

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl/files"
)

// TestLostAgain: a file that was found to be lost is looked at once more without a
// notification, and then left alone.
func TestLostAgain(t *testing.T) {
	x := newAudited(t)
	f := x.arrive()
	look := func(want files.State) {
		t.Helper()
		if got, err := x.Look(t.Context(), f.ID, false); err != nil || got.State != want {
			t.Fatalf("%s, %v: want it %s", got.State, err, want)
		}
	}
	sweep := func(later time.Duration, want int) {
		t.Helper()
		x.Now = func() time.Time { return time.Now().Add(later) }
		if n, err := x.Sweep(t.Context(), 10); err != nil || n != want {
			t.Errorf("%d looks, %v: want %d", n, err, want)
		}
		x.Now = nil
	}
	remove := func() {
		t.Helper()
		if err := x.Objects.Remove(t.Context(), f.Key); err != nil {
			t.Fatal(err)
		}
	}
	look(files.Indexed)
	remove()
	look(files.Lost)
	x.put(&f, "hello")
	sweep(2*time.Minute, 1)
	look(files.Indexed)
	remove()
	look(files.Lost)
	sweep(2*time.Minute, 1)
	sweep(time.Hour, 0)
	look(files.Lost)
}
