package pgledger

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/servertest"
	"github.com/pawlhq/pawl/ledger"
)

// Rows that are locked keep others waiting for seconds, not for ever.
func TestLocked(t *testing.T) {
	s := open(t, servertest.Postgres(t).URL)
	t.Run("sessions", func(t *testing.T) { // both wait at once
		t.Run("worker", func(t *testing.T) { t.Parallel(); testWorkerStandsStill(t, s) })
		t.Run("stranger", func(t *testing.T) { t.Parallel(); testStrangersLock(t, s) })
	})
}

// A worker that stands still between its completion and its commit, or is cut off,
// loses its transaction: other objects' swaps in a batch with its row go on.
func testWorkerStandsStill(t *testing.T, s *Store) {
	row, claim := claimed(t, s, "still")
	tx, err := s.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }() // it is undone already
	if err := Complete(t.Context(), tx, ending(s, claim)); err != nil {
		t.Fatal(err)
	}
	next := row
	next.Nonce = ledger.Nonce{7}
	other := ledger.Row{RowKey: ledger.RowKey{Pipeline: "p", Bucket: "b", Key: "other"}, Nonce: ledger.Nonce{8}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := ledger.New(s).Swap(ctx, []ledger.Change{
		{Key: row.RowKey, Expect: row.Nonce, Row: &next}, {Key: other.RowKey, Row: &other},
	})
	if err != nil || !out[0].Applied || !out[1].Applied {
		t.Errorf("%+v, %v: want both applied", out, err)
	}
	if err := tx.Commit(t.Context()); err == nil {
		t.Error("it has committed all the same")
	}
}

// A lock of another session's is named as the reason, by an error that says where to
// look.
func testStrangersLock(t *testing.T, s *Store) {
	row, _ := claimed(t, s, "locked")
	tx, err := s.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }() // there is nothing to undo
	if _, err := tx.Exec(t.Context(), "SELECT FROM pawl.ledger WHERE key = 'locked' FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	next := row
	next.Nonce = ledger.Nonce{7}
	_, err = s.Swap(t.Context(), []ledger.Change{{Key: row.RowKey, Expect: row.Nonce, Row: &next}})
	if err == nil || errors.Is(err, ledger.ErrUnusable) || !strings.Contains(err.Error(), "another session keeps locked") {
		t.Errorf("%v: want the lock named, and to go on", err)
	}
}

// Registers are what leases and archives go by: what was answered for is there after a
// crash, too.
func TestARegisterSurvivesACrash(t *testing.T) {
	server := servertest.Postgres(t, "synchronous_commit=off", "wal_writer_delay=10000")
	version, err := open(t, server.URL).WriteRegister(t.Context(), "a", "", []byte("1"))
	if err != nil {
		t.Fatal(err)
	}
	server.Stop()
	server.Start()
	if r, err := open(t, server.URL).ReadRegister(t.Context(), "a"); err != nil || r.Version != version {
		t.Errorf("%+v, %v: want version %s", r, err, version)
	}
}

// A ledger that does not answer is there: it is not host and port that are wrong.
func TestALockedSchema(t *testing.T) {
	s := &Store{name: DefaultSchema}
	err := s.explainOpen(t.Context(), errors.Join(errors.New("timeout"), context.DeadlineExceeded))
	if !errors.Is(err, ledger.ErrUnusable) || !strings.Contains(err.Error(), "another session keeps locked what is needed") {
		t.Error(err)
	}
}
