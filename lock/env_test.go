package lock

import (
	"testing"
	"time"
	"unsafe"
)

// The monotonic clock stops while the machine sleeps, and the wall clock can be set back.
func TestElapsedUsesFasterClock(t *testing.T) {
	since := time.Now()
	for _, c := range []struct {
		name            string
		monotonic, wall time.Duration
	}{
		{"asleep", time.Second, time.Hour},
		{"put back", time.Hour, -time.Hour},
		{"neither", time.Second, time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := timeWithClocks(since, c.monotonic, c.wall)
			if got, want := elapsed(since, now), max(c.monotonic, c.wall); got != want {
				t.Errorf("held for %v, want %v", got, want)
			}
		})
	}
}

// timeWithClocks returns a time that package time makes only on a machine that sleeps.
func timeWithClocks(since time.Time, monotonic, wall time.Duration) time.Time {
	now := since.Add(wall)
	ext := (*int64)(unsafe.Add(unsafe.Pointer(&now), unsafe.Sizeof(uint64(0))))
	*ext += int64(monotonic - wall)
	if now.Sub(since) != monotonic || now.Round(0).Sub(since.Round(0)) != wall {
		panic("a time.Time holds its monotonic reading elsewhere now")
	}
	return now
}
