package pgledger

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/servertest"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/ledger/memledger"
)

type task func() (*ledger.Completion, error)

// Completion implements [Task].
func (t task) Completion() (*ledger.Completion, error) { return t() }

// claimed puts a row in that was just claimed.
func claimed(t *testing.T, s *Store, key string) (ledger.Row, ledger.Claim) {
	t.Helper()
	p, now := ledger.DefaultPolicy(), time.Now().UTC()
	row := ledger.Row{RowKey: ledger.RowKey{Pipeline: "p", Bucket: "b", Key: key}}
	row, _ = row.Observe(&event.Event{Kind: event.Created, Time: now}, false, now)
	row, claim, why := row.Claim("w", &p, now)
	if why != ledger.Granted {
		t.Fatal(why)
	}
	row.Nonce = ledger.Nonce{1}
	swap(t, s, ledger.Change{Key: row.RowKey, Row: &row})
	return row, claim
}

func swap(t *testing.T, s *Store, c ledger.Change) {
	t.Helper()
	out, err := s.Swap(t.Context(), []ledger.Change{c})
	if err != nil || !out[0].Applied {
		t.Fatalf("%+v, %v", out, err)
	}
}

func ending(s ledger.Store, claim ledger.Claim) task {
	return func() (*ledger.Completion, error) {
		return &ledger.Completion{
			Store: s, Claim: claim, Read: ledger.Read{Kind: event.Created}, Now: time.Now().UTC(), Nonce: ledger.Nonce{9},
		}, nil
	}
}

func (s *Store) row(t *testing.T, k ledger.RowKey) ledger.Row {
	t.Helper()
	rows, err := s.Load(t.Context(), []ledger.RowKey{k})
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	return rows[0]
}

func TestCompleteNeedsThisLedger(t *testing.T) {
	s := open(t, servertest.Postgres(t).URL)
	_, claim := claimed(t, s, "k")
	err := pgx.BeginFunc(t.Context(), s.Pool(), func(tx pgx.Tx) error { return Complete(t.Context(), tx, ending(memledger.New(), claim)) })
	if err == nil || !strings.Contains(err.Error(), "is a *memledger.Store, not one in PostgreSQL") {
		t.Errorf("with another ledger: %v", err)
	}
}

// unlocked is a transaction that locks no row, and in which another session changes the
// row after each read.
type unlocked struct {
	pgx.Tx
	change func()
}

func (u unlocked) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return u.Tx.Query(ctx, strings.Replace(sql, " FOR UPDATE OF l", "", 1), args...)
}

func (u unlocked) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	u.change()
	return u.Tx.Exec(ctx, sql, args...)
}

// A completion replaces only the row that it read, even without its lock.
func TestCompleteIsConditional(t *testing.T) {
	s := open(t, servertest.Postgres(t).URL)
	row, claim := claimed(t, s, "k")
	err := pgx.BeginFunc(t.Context(), s.Pool(), func(tx pgx.Tx) error {
		return Complete(t.Context(), unlocked{tx, func() {
			next := row
			next.Nonce = ledger.Nonce{2}
			swap(t, s, ledger.Change{Key: row.RowKey, Expect: row.Nonce, Row: &next})
		}}, ending(s, claim))
	})
	if err == nil || !strings.Contains(err.Error(), "the row changed although the transaction locked it") {
		t.Errorf("%v: want that the row changed", err)
	}
	if now := s.row(t, row.RowKey); now.Nonce != (ledger.Nonce{2}) {
		t.Errorf("the completion overwrote the other session's row: %+v", now)
	}
}

// A failure of the attempt waits for a commit that is on its way, and is refused by it.
// The worker relies on that where the answer to the commit was lost.
func TestAFailureWaitsForTheCommit(t *testing.T) {
	s := open(t, servertest.Postgres(t).URL)
	p := ledger.DefaultPolicy()
	for _, commit := range []bool{true, false} {
		row, claim := claimed(t, s, map[bool]string{true: "committed", false: "rolled back"}[commit])
		tx, err := s.Pool().Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := Complete(t.Context(), tx, ending(s, claim)); err != nil {
			t.Fatal(err)
		}
		failed, _ := row.Fail(&claim, &ledger.Ending{}, &ledger.Failure{Message: "the answer was lost"}, 0.5, &p, time.Now().UTC())
		failed.Nonce = ledger.Nonce{3}
		answer := make(chan []ledger.Outcome)
		go func() {
			out, err := s.Swap(t.Context(), []ledger.Change{{Key: row.RowKey, Expect: row.Nonce, Row: &failed}})
			if err != nil {
				t.Error(err)
			}
			answer <- out
		}()
		for waits := false; !waits; {
			err := s.pool.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)").Scan(&waits)
			if err != nil {
				t.Fatal(err)
			}
		}
		end := tx.Rollback
		if commit {
			end = tx.Commit
		}
		if err := end(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
		out := <-answer
		if out[0].Applied == commit || commit && !out[0].Current.CommittedBy(&claim) {
			t.Errorf("commit %v: %+v", commit, out[0])
		}
	}
}
