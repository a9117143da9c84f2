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
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/dynamo"
	"github.com/pawlhq/pawl/store/sqlite"
)

// lossyRegisters loses the response to every third write of a register. Half of these writes land.
type lossyRegisters struct {
	ledger.Registers
	writes *atomic.Int64
}

func (s lossyRegisters) WriteRegister(ctx context.Context, name, version string, value []byte) (string, error) {
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

func TestRegisterFaults(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "pawl.db")
		testRegisterFaults(t, 60, func() (store.Store, error) { return sqlite.Open(t.Context(), path) })
	})
	t.Run("dynamodb", func(t *testing.T) {
		t.Setenv("AWS_ACCESS_KEY_ID", "pawl")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "pawl")
		table := servertest.DynamoDB(t).NewTable()
		if err := dynamo.Create(t.Context(), table); err != nil {
			t.Fatal(err)
		}
		testRegisterFaults(t, 20, func() (store.Store, error) { return dynamo.Open(t.Context(), table) })
	})
}

func testRegisterFaults(t *testing.T, alone int, open func() (store.Store, error)) {
	writes := new(atomic.Int64)
	mutex := func(name string, c lock.Config) *lock.Mutex {
		records, err := open()
		if err != nil {
			t.Fatal(err)
		}
		s := ledger.NewRows(records)
		t.Cleanup(func() { _ = s.Close() })
		m, err := lock.OnRegister(lossyRegisters{s, writes}, name, c)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	ours := mutex("alone", lock.Config{})
	var token int64
	for range alone {
		l, err := ours.TryAcquire(t.Context())
		if err != nil {
			t.Fatalf("no other process wants the lock: %v", err)
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
	runContenders(t, func(i int, critical func()) error {
		return withLease(t.Context(), apart[i%len(apart)], critical)
	})
	t.Logf("of %d writes every third had no answer", writes.Load())
}
