package lock_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/lock"
	"github.com/pawlhq/pawl/store/sqlite"
)

// silent is a ledger that does not answer every third write of a register: of
// these, every other one has landed.
type silent struct {
	ledger.Registers
	writes *atomic.Int64
}

func (s silent) WriteRegister(ctx context.Context, name, version string, value []byte) (string, error) {
	n := s.writes.Add(1)
	if n%6 == 3 {
		return "", errors.New("a write was lost")
	}
	next, err := s.Registers.WriteRegister(ctx, name, version, value)
	if n%6 == 0 {
		return "", errors.New("an answer was lost")
	}
	return next, err
}

// TestSilentSQLite is TestDroppedAnswers on registers of a SQLite ledger: nobody is
// told that somebody else holds a lock that is their own, and the lock excludes.
func TestSilentSQLite(t *testing.T) {
	path, writes := filepath.Join(t.TempDir(), "pawl.db"), new(atomic.Int64)
	mutex := func(name string, c lock.Config) *lock.Mutex {
		records, err := sqlite.Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		s := ledger.Over(records)
		t.Cleanup(func() { _ = s.Close() })
		m, err := lock.OnRegister(silent{s, writes}, name, c)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	alone := mutex("alone", lock.Config{})
	var token int64
	for range 60 {
		l, err := alone.TryAcquire(t.Context())
		if err != nil {
			t.Fatalf("nobody else wants the lock: %v", err)
		}
		if l.Token() <= token {
			t.Fatalf("token %d after %d", l.Token(), token)
		}
		token = l.Token()
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var apart []*lock.Mutex
	for i := range 8 {
		apart = append(apart, mutex("contended", lock.Config{Owner: fmt.Sprint(i)}))
	}
	each(t, func(i int, critical func()) error {
		return leased(t.Context(), apart[i%len(apart)], critical)
	})
	t.Logf("of %d writes every third had no answer", writes.Load())
}
