//go:build unix

package lockcmd

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/buckettest"
	"github.com/pawlhq/pawl/bucket/membucket"
	"github.com/pawlhq/pawl/internal/virtualtime"
	"github.com/pawlhq/pawl/lock"
)

func TestExpiryCause(t *testing.T) {
	for _, c := range []struct {
		name  string
		lost  int
		stall time.Duration
		says  string
	}{
		{"unreachable", 100, 0, "it could not be renewed within its TTL of 1s"},
		{"unreachable, and slow", 100, time.Second, "it could not be renewed within its TTL of 1s"},
		{"paused", 0, 1234 * time.Millisecond, "this process was paused for 1.234s"},
		{"neither", 0, 400 * time.Millisecond, "the guard of the command received no renewal"},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtualtime.Test(t, func(t *testing.T) {
				store := buckettest.NewFaults(membucket.New(time.Now, []string{"b"}))
				m, err := lock.Proved(store, "b").Mutex("lock", lock.Config{TTL: time.Second})
				if err != nil {
					t.Fatal(err)
				}
				lease, err := m.Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for range c.lost {
					store.Next(buckettest.Put, buckettest.Lost)
					store.Next(buckettest.Get, buckettest.Answer(bucket.ErrUnavailable))
				}
				why := expiryCause(lease, c.stall, time.Second)
				if !errors.Is(why, lock.ErrLost) || !strings.Contains(why.Error(), c.says) {
					t.Errorf("%v, want %q", why, c.says)
				}
				_ = lease.Release(t.Context())
			})
		})
	}
}
