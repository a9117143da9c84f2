package sqlite

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/pawlhq/pawl/store"
)

// queueCalls returns when n calls are queued behind the writer.
func queueCalls(s *Store, n int, call func(i int)) (wait func()) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { call(i) })
	}
	for {
		s.mu.Lock()
		queued := len(s.queue)
		s.mu.Unlock()
		if queued == n {
			return wg.Wait
		}
		runtime.Gosched()
	}
}

func TestCallsShareTransaction(t *testing.T) {
	s := openTest(t)
	const n = 20
	changes := records(2 * n)
	refused := store.Change{Key: store.Key{Space: "s", Name: "none"}, Expect: store.Nonce{9}}
	before := commits(t, s)
	w := <-s.writer
	wait := queueCalls(s, n, func(i int) {
		own, call := changes[2*i:2*i+2:2*i+2], s.Swap
		if i%2 == 0 {
			call = s.Apply
		}
		if i%4 == 0 {
			own = append(own, refused)
		}
		out, err := call(t.Context(), own)
		if err != nil || len(out) != len(own) || out[0].Applied != (i%4 > 0) || i%4 == 0 && !out[2].Refused {
			t.Errorf("call %d: %+v, error %v", i, out, err)
		}
	})
	s.writer <- w
	wait()
	if got := commits(t, s) - before; got != 1 {
		t.Errorf("%d transactions, want 1", got)
	}
	if got, want := count(t, s), 2*n-2*n/4; got != want {
		t.Errorf("%d records, want %d", got, want)
	}
}

// The last frame of a transaction has the size of the database in its header.
func commits(t *testing.T, s *Store) (n int) {
	t.Helper()
	const header, frameHeader, page = 32, 24, 4096
	log, err := os.ReadFile(s.walPath)
	if err != nil {
		t.Fatal(err)
	}
	for at := header; at < len(log); at += frameHeader + page {
		if binary.BigEndian.Uint32(log[at+4:]) > 0 {
			n++
		}
	}
	return n
}

func lockByOther(t *testing.T, s *Store) {
	t.Helper()
	conn, err := sqlite.OpenConn(s.path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	end, err := sqlitex.ImmediateTransaction(conn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		end(&err)
		if err := errors.Join(err, conn.Close()); err != nil {
			t.Error(err)
		}
	})
}

func TestQueuedCallCanceled(t *testing.T) {
	s := openTest(t)
	w := <-s.writer
	ctx, cancel := context.WithCancel(t.Context())
	wait := queueCalls(s, 1, func(int) {
		if _, err := s.Swap(ctx, records(1)); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want context.Canceled", err)
		}
	})
	cancel()
	wait()
	s.writer <- w
	if _, err := s.Swap(t.Context(), records(2)[1:]); err != nil {
		t.Error(err)
	}
	if n := count(t, s); n != 1 {
		t.Errorf("%d records, want 1", n)
	}
}

func TestQueuedCallsThrottled(t *testing.T) {
	s := openTest(t)
	s.wait = time.Second
	lockByOther(t, s)
	const calls = 120
	start := time.Now()
	var wg sync.WaitGroup
	for i := range calls {
		wg.Go(func() {
			if _, err := s.Swap(t.Context(), records(calls)[i:i+1]); !errors.Is(err, store.ErrThrottled) {
				t.Errorf("error %v, want ErrThrottled", err)
			}
		})
	}
	wg.Wait()
	if waited := time.Since(start); waited > calls/2*s.wait {
		t.Errorf("waited %v for %d calls, each of which waits %v", waited, calls, s.wait)
	}
}

func TestWrite(t *testing.T) {
	s := openTest(t)
	if _, err := s.Swap(t.Context(), records(3)); err != nil {
		t.Fatal(err)
	}
	const remove = "DELETE FROM record WHERE name = CAST('000000' AS BLOB)"
	failed := errors.New("failed")
	ctx, cancel := context.WithCancel(t.Context())
	for name, f := range map[string]func(*sqlite.Conn) error{
		"error": func(*sqlite.Conn) error { return failed },
		"panic": func(*sqlite.Conn) error { panic("at the disco") },
		"unfinished statement": func(conn *sqlite.Conn) error {
			stmt, err := conn.Prepare("SELECT name FROM record")
			if err == nil {
				_, err = stmt.Step()
			}
			return err
		},
		"endless statement": func(conn *sqlite.Conn) error {
			time.AfterFunc(20*time.Millisecond, cancel)
			return sqlitex.ExecuteTransient(conn, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n", nil)
		},
	} {
		use := t.Context()
		if name == "endless statement" {
			use = ctx
		}
		err := writeSafely(use, s, func(conn *sqlite.Conn) error {
			if err := sqlitex.Execute(conn, remove, nil); err != nil {
				return err
			}
			return f(conn)
		})
		want := map[string]string{"error": "failed", "panic": "at the disco", "unfinished statement": "reset it", "endless statement": "canceled"}[name]
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", name, err)
		}
		if n := count(t, s); n != 3 {
			t.Errorf("%s: %d records, want 3", name, n)
		}
	}
	if err := s.Write(t.Context(), func(conn *sqlite.Conn) error { return sqlitex.Execute(conn, remove, nil) }); err != nil {
		t.Error(err)
	}
	if n := count(t, s); n != 2 {
		t.Errorf("%d records, want 2", n)
	}
}

func writeSafely(ctx context.Context, s *Store, f func(*sqlite.Conn) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return s.Write(ctx, f)
}

func TestWriteLocked(t *testing.T) {
	s := openTest(t)
	lockByOther(t, s)
	err := s.Write(t.Context(), func(*sqlite.Conn) error {
		t.Error("the function was called")
		return nil
	})
	if !errors.Is(err, store.ErrThrottled) {
		t.Errorf("error %v, want ErrThrottled", err)
	}
}

func TestTxMisuse(t *testing.T) {
	s := openTest(t)
	changes := records(2)
	if _, err := s.Swap(t.Context(), changes[:1]); err != nil {
		t.Fatal(err)
	}
	conn, err := sqlite.OpenConn(s.path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	tx := s.In(conn)
	if _, err := tx.Lock(t.Context(), changes[0].Key); !errors.Is(err, errNoTransaction) {
		t.Errorf("Lock: error %v", err)
	}
	if err := tx.Put(t.Context(), *changes[0].Next); !errors.Is(err, errNoTransaction) {
		t.Errorf("Put: error %v", err)
	}
	end, err := sqlitex.ImmediateTransaction(conn)
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Put(t.Context(), *changes[1].Next); !errors.Is(err, errNoRecord) {
		t.Errorf("Put of no record: error %v", err)
	}
	if err := tx.Put(t.Context(), store.Record{Key: changes[0].Key}); !errors.Is(err, store.ErrRejected) {
		t.Errorf("Put without a nonce: error %v", err)
	}
	next := *changes[0].Next
	next.Nonce = store.Nonce{7}
	err = tx.Put(t.Context(), next)
	if end(&err); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Load(t.Context(), []store.Key{next.Key}); err != nil || len(r) != 1 || r[0].Nonce != next.Nonce {
		t.Errorf("%+v, error %v", r, err)
	}
}
