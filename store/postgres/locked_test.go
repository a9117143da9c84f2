package postgres

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store"
)

func TestLocks(t *testing.T) {
	t.Parallel()
	s := openStore(t, servertest.Postgres(t, "deadlock_timeout=2s").URL)
	t.Run("sessions", func(t *testing.T) { // all wait concurrently
		t.Run("paused", func(t *testing.T) { t.Parallel(); testPausedTransaction(t, s) })
		t.Run("locked", func(t *testing.T) { t.Parallel(); testLockTimeout(t, s) })
		t.Run("deadlock", func(t *testing.T) { t.Parallel(); testDeadlock(t, s) })
	})
}

func begin(t *testing.T, s *Store) pgx.Tx {
	t.Helper()
	tx, err := s.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) }) // has already ended, unless the test failed
	return tx
}

// The server ends a transaction that pauses between Put and commit. Then swaps in the same batch as
// its record land.
func testPausedTransaction(t *testing.T, s *Store) {
	a := newRecord("s", "paused")
	s.insertAll(t, a)
	tx := begin(t, s)
	if err := s.renew(t.Context(), tx, a.Key); err != nil {
		t.Fatal(err)
	}
	changes := []store.Change{replacement(a), insertion(newRecord("s", "other"))}
	out, err := s.Swap(t.Context(), changes)
	for errors.Is(err, store.ErrThrottled) { // both bounds are five seconds
		out, err = s.Swap(t.Context(), changes)
	}
	if err != nil || !out[0].Applied || !out[1].Applied {
		t.Errorf("%+v, %v: want both applied", out, err)
	}
	if err := tx.Commit(t.Context()); err == nil {
		t.Error("the paused transaction has committed")
	}
}

func testLockTimeout(t *testing.T, s *Store) {
	a := newRecord("s", "locked")
	s.insertAll(t, a)
	tx := begin(t, s)
	if _, err := tx.Exec(t.Context(), "SELECT FROM pawl.record WHERE name = 'locked' FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	_, err := s.Apply(t.Context(), []store.Change{replacement(a)})
	if !errors.Is(err, store.ErrThrottled) || !strings.Contains(err.Error(), "another session keeps locked") {
		t.Errorf("%v: want it throttled, and the lock named", err)
	}
}

func testDeadlock(t *testing.T, s *Store) {
	a, b := newRecord("s", "deadlock a"), newRecord("s", "deadlock b")
	s.insertAll(t, a, b)
	tx := begin(t, s)
	if _, err := tx.Exec(t.Context(), "SET LOCAL deadlock_timeout = '1min'"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.In(tx).Lock(t.Context(), b.Key); err != nil {
		t.Fatal(err)
	}
	applied := make(chan error)
	go func() {
		changes := []store.Change{replacement(b), replacement(a)}
		out, err := s.Apply(t.Context(), changes)
		for err != nil && strings.Contains(err.Error(), "another session keeps locked") { // the test paused before its last Lock
			out, err = s.Apply(t.Context(), changes)
		}
		if err == nil && !out[0].Applied {
			err = errors.New("not applied")
		}
		applied <- err
	}()
	var waits bool
	for !waits { // until it waits for b with a locked
		err := s.pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND $1 = ANY (pg_blocking_pids(pid)))`,
			tx.Conn().PgConn().PID()).Scan(&waits)
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.In(tx).Lock(t.Context(), a.Key); err != nil {
		t.Errorf("the transaction was rolled back instead of the Apply: %v", err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-applied; err != nil {
		t.Error(err)
	}
}

// A change must leave no state in the session, because a pooler may give the session to another
// client.
func TestDefaultsAndSessions(t *testing.T) {
	t.Parallel()
	server := servertest.Postgres(t)
	s := openStore(t, server.URLWith(func(_ *url.URL, p url.Values) {
		p.Set("synchronous_commit", "off")
		p.Set("default_transaction_isolation", "serializable")
	}))
	server.Exec(`
		CREATE FUNCTION pawl.demand() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF current_setting('synchronous_commit') = 'off' OR current_setting('transaction_isolation') <> 'read committed' THEN
				RAISE 'commit %, isolation %', current_setting('synchronous_commit'), current_setting('transaction_isolation');
			END IF;
			RETURN coalesce(NEW, OLD);
		END $$;
		CREATE TRIGGER demand BEFORE INSERT OR UPDATE OR DELETE ON pawl.record FOR EACH ROW EXECUTE FUNCTION pawl.demand()`)
	for i, write := range []func(context.Context, []store.Change) ([]store.Outcome, error){s.Swap, s.Apply} {
		a := newRecord("s", string(rune('a'+i)))
		next := replacement(a)
		for _, c := range []store.Change{insertion(a), next, {Key: a.Key, Expect: next.Next.Nonce}} {
			if out, err := write(t.Context(), []store.Change{c}); err != nil || !out[0].Applied {
				t.Errorf("%+v, %v", out, err)
			}
		}
	}
	for r, err := range s.Scan(t.Context(), store.Range{Space: "s"}) {
		t.Error(r, err)
	}
	var left int
	err := s.pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM pg_prepared_statements) +
		(SELECT count(*) FROM pg_settings WHERE source = 'session')`).Scan(&left)
	if err != nil || left > 0 {
		t.Errorf("%d statements and settings are left in the session, %v", left, err)
	}
}
