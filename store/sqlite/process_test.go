package sqlite

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/pawlhq/pawl/store"
)

// The tests of this file run this binary in several processes.
const childEnv = "SQLITE_STORE_CHILD"

var children = map[string]func(ctx context.Context, path string) error{
	"lock": lockChild, "increment": incrementChild, "append": appendChild,
}

func TestMain(m *testing.M) {
	if run := children[os.Getenv(childEnv)]; run != nil {
		if err := run(context.Background(), os.Args[len(os.Args)-1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func child(t *testing.T, role, path string) (*exec.Cmd, *bufio.Scanner, io.Closer) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, path)
	cmd.Env = append(os.Environ(), childEnv+"="+role)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out), in
}

func lockElsewhere(t *testing.T, path string) (unlock func()) {
	t.Helper()
	cmd, out, in := child(t, "lock", path)
	if !out.Scan() || out.Text() != "locked" {
		t.Fatalf("no lock: %q, %v", out.Text(), out.Err())
	}
	unlock = func() {
		_ = in.Close() // closed twice
		_ = cmd.Wait()
	}
	t.Cleanup(unlock)
	return unlock
}

func lockChild(_ context.Context, path string) error {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := sqlitex.ExecuteTransient(conn, "PRAGMA locking_mode = exclusive", nil); err != nil {
		return err
	}
	if err := sqlitex.ExecuteTransient(conn, "BEGIN EXCLUSIVE", nil); err != nil {
		return err
	}
	fmt.Println("locked")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// openPatient waits minutes for a lock, because the process that holds it may pause.
func openPatient(ctx context.Context, path string) (*Store, error) {
	return open(ctx, path, 5*time.Minute, false)
}

const increments = 100

func counterKey(i int) store.Key {
	return store.Key{Space: "s", Name: strconv.Itoa(i % 3)}
}

func incrementChild(ctx context.Context, path string) error {
	s, err := openPatient(ctx, path)
	if err != nil {
		return err
	}
	defer s.Close()
	for i := range increments {
		if err := increment(ctx, s, counterKey(i)); err != nil {
			return err
		}
	}
	return nil
}

func increment(ctx context.Context, s *Store, k store.Key) error {
	now := &store.Record{Key: k, Body: "0"}
	for {
		n, err := strconv.Atoi(now.Body)
		if err != nil {
			return err
		}
		next := &store.Record{Key: k, Body: strconv.Itoa(n + 1)}
		_, _ = rand.Read(next.Nonce[:])
		out, err := s.Swap(ctx, []store.Change{{Key: k, Expect: now.Nonce, Next: next}})
		if err != nil || out[0].Applied {
			return err
		}
		now = out[0].Current
	}
}

func TestProcessesRace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	const processes = 4
	var cmds []*exec.Cmd
	for range processes {
		cmd, _, _ := child(t, "increment", path)
		cmds = append(cmds, cmd)
	}
	for _, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	sum := 0
	for r, err := range s.Scan(t.Context(), store.Range{Space: "s"}) {
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	if sum != processes*increments {
		t.Errorf("%d increments are left of %d", sum, processes*increments)
	}
}

func appendChild(ctx context.Context, path string) error {
	s, err := openPatient(ctx, path)
	if err != nil {
		return err
	}
	defer s.Close()
	for n := 0; ; n++ {
		name := fmt.Sprintf("%d.%d", os.Getpid(), n)
		out, err := s.Swap(ctx, appended(name))
		if err != nil {
			return err
		}
		for _, o := range out {
			if !o.Applied {
				return fmt.Errorf("batch %s was refused", name)
			}
		}
		fmt.Println(name)
	}
}

func appended(name string) []store.Change {
	changes := make([]store.Change, 40)
	for i := range changes {
		k := store.Key{Space: "s", Name: fmt.Sprintf("%s/%d", name, i)}
		r := &store.Record{Key: k, Body: name}
		_, _ = rand.Read(r.Nonce[:])
		changes[i] = store.Change{Key: k, Next: r}
	}
	return changes
}

func TestProcessesKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	acked := map[string]bool{}
	for range 8 {
		a, outA, _ := child(t, "append", path)
		b, outB, _ := child(t, "append", path)
		for range 1 + mathrand.IntN(30) {
			if !outA.Scan() || !outB.Scan() {
				t.Fatalf("a child ended by itself: %v, %v", outA.Err(), outB.Err())
			}
			acked[outA.Text()], acked[outB.Text()] = true, true
		}
		for i, cmd := range []*exec.Cmd{a, b} {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			for out := []*bufio.Scanner{outA, outB}[i]; out.Scan(); {
				acked[out.Text()] = true
			}
			_ = cmd.Wait() // killed
		}
	}
	s, err := Open(t.Context(), path) // checks the whole file
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	found := map[string]int{}
	for r, err := range s.Scan(t.Context(), store.Range{Space: "s"}) {
		if err != nil {
			t.Fatal(err)
		}
		found[r.Body]++
	}
	for name, n := range found {
		if n != len(appended(name)) {
			t.Errorf("batch %s: %d records of %d", name, n, len(appended(name)))
		}
		delete(acked, name)
	}
	if len(acked) > 0 {
		t.Errorf("lost after the answer: %v", acked)
	}
}
