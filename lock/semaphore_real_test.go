package lock_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlhq/pawl/lock"
	"github.com/pawlhq/pawl/proof/servertest"
)

func TestKindsOnRealServers(t *testing.T) {
	servertest.Each(t, servertest.Options{}, func(t *testing.T, server *servertest.Server) {
		c := newCountingProxy(t, server, 0)
		name := server.NewBucket(t)
		var inside atomic.Int64
		contend := func(t *testing.T, limit int64, acquire func(b *lock.Bucket, i int) (*lock.Lease, int64, error)) {
			t.Helper()
			var wg sync.WaitGroup
			for i := range 6 {
				b := lock.Proved(c.store(t, server), name)
				wg.Go(func() {
					l, weight, err := acquire(b, i)
					if err != nil {
						t.Error(err)
						return
					}
					now := inside.Add(weight)
					if now > limit {
						t.Errorf("%d at a time, want at most %d", now, limit)
					}
					<-time.After(10 * time.Millisecond) // otherwise the holders would rarely overlap
					inside.Add(-weight)
					if err := l.Release(context.WithoutCancel(t.Context())); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		}
		t.Run("semaphore", func(t *testing.T) {
			contend(t, 2, func(b *lock.Bucket, i int) (*lock.Lease, int64, error) {
				s, err := b.Semaphore("s", 2, lock.Config{Owner: fmt.Sprint(i)})
				if err != nil {
					return nil, 0, err
				}
				l, err := s.Acquire(t.Context())
				return l, 1, err
			})
		})
		t.Run("shared", func(t *testing.T) {
			const writer = 100
			contend(t, writer, func(b *lock.Bucket, i int) (*lock.Lease, int64, error) {
				m, err := b.RWMutex("s", lock.Config{Owner: fmt.Sprint(i)})
				if err != nil {
					return nil, 0, err
				}
				if i%3 == 0 {
					l, err := m.Lock(t.Context())
					return l, writer, err
				}
				l, err := m.RLock(t.Context())
				return l, 1, err
			})
		})
	})
}
