package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store"
)

func (s *Store) renew(ctx context.Context, tx pgx.Tx, k store.Key) error {
	t := s.In(tx)
	r, err := t.Lock(ctx, k)
	if err != nil || r == nil {
		return errors.Join(errors.New("locked nothing"), err)
	}
	return t.Put(ctx, *replacement(*r).Next)
}

func TestTransaction(t *testing.T) {
	t.Parallel()
	s := openStore(t, servertest.Postgres(t).URL)
	t.Run("refusals", func(t *testing.T) { testTransactionRefuses(t, s) })
	t.Run("conditional", func(t *testing.T) { testPutIsConditional(t, s) })
	t.Run("waits", func(t *testing.T) { testSwapWaitsForTheCommit(t, s) })
}

func testTransactionRefuses(t *testing.T, s *Store) {
	a := newRecord("refusals", "a")
	s.insertAll(t, a)
	err := pgx.BeginFunc(t.Context(), s.Pool(), func(tx pgx.Tx) error {
		r, err := s.In(tx).Lock(t.Context(), store.Key{Space: "refusals", Name: "b"})
		if r != nil || err != nil {
			t.Errorf("a missing record: %+v, %v", r, err)
		}
		return s.In(tx).Put(t.Context(), *replacement(a).Next)
	})
	if !errors.Is(err, store.ErrRejected) || !strings.Contains(err.Error(), "was not locked in this transaction") {
		t.Errorf("Put without Lock: %v", err)
	}
	err = pgx.BeginTxFunc(t.Context(), s.Pool(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		return s.renew(t.Context(), tx, a.Key)
	})
	if err == nil || !strings.Contains(err.Error(), "the transaction is repeatable read: begin it with pgx.TxOptions") {
		t.Errorf("another isolation: %v", err)
	}
	if got := s.load(t, a.Key); *got != a {
		t.Errorf("%+v: want %+v", got, a)
	}
}

// unlocked does not lock records. Another session changes the record before each write.
type unlocked struct {
	pgx.Tx
	change func()
}

func (u unlocked) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return u.Tx.Query(ctx, strings.Replace(sql, " FOR UPDATE", "", 1), args...)
}

func (u unlocked) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	u.change()
	return u.Tx.Exec(ctx, sql, args...)
}

func testPutIsConditional(t *testing.T, s *Store) {
	a := newRecord("conditional", "a")
	s.insertAll(t, a)
	theirs := replacement(a)
	err := pgx.BeginFunc(t.Context(), s.Pool(), func(tx pgx.Tx) error {
		return s.renew(t.Context(), unlocked{tx, func() {
			if out, err := s.Swap(t.Context(), []store.Change{theirs}); err != nil || !out[0].Applied {
				t.Error(out, err)
			}
		}}, a.Key)
	})
	if err == nil || !strings.Contains(err.Error(), "the record changed although the transaction locked it") {
		t.Errorf("%v: want an error about the changed record", err)
	}
	if got := s.load(t, a.Key); *got != *theirs.Next {
		t.Errorf("the transaction overwrote the other session's record: %+v", got)
	}
}

// The worker relies on this if the answer to its commit is lost.
func testSwapWaitsForTheCommit(t *testing.T, s *Store) {
	for _, commit := range []bool{true, false} {
		a := newRecord("waits", map[bool]string{true: "committed", false: "rolled back"}[commit])
		s.insertAll(t, a)
		tx, err := s.Pool().Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.renew(t.Context(), tx, a.Key); err != nil {
			t.Fatal(err)
		}
		answer := make(chan []store.Outcome)
		go func() {
			out, err := s.Swap(t.Context(), []store.Change{replacement(a)})
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
		if out := <-answer; len(out) != 1 || out[0].Applied == commit || out[0].Refused != commit {
			t.Errorf("commit %v: %+v", commit, out)
		}
	}
}
