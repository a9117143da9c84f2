//go:build unix

package lock_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/lock"
	"github.com/pawlhq/pawl/store/sqlite"
)

const (
	// killTTL leaves a second between a write and the next renewal. A process that is stopped in
	// the middle of a write keeps the SQLite file locked.
	killTTL = 3 * time.Second
	// killMargin allows for a busy machine.
	killMargin = time.Minute
	// holderEnv names the ledger to the helper process.
	holderEnv = "PAWL_TEST_LOCK_LEDGER"
)

func sqliteMutex(t *testing.T, path string, ttl time.Duration) *lock.Mutex {
	t.Helper()
	records, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	s := ledger.NewRows(records)
	t.Cleanup(func() { _ = s.Close() })
	m, err := lock.OnRegister(s, "audit/lease", lock.Config{TTL: ttl, Owner: fmt.Sprint(os.Getpid())})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestHelperHoldsRegister is the helper process, which prints what happens to its lock.
func TestHelperHoldsRegister(t *testing.T) {
	path := os.Getenv(holderEnv)
	if path == "" {
		return
	}
	l, err := sqliteMutex(t, path, killTTL).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("holds %d\n", l.Token())
	<-l.Context().Done()
	fmt.Printf("context: %t, release: %t\n", errors.Is(context.Cause(l.Context()), lock.ErrLost), errors.Is(l.Release(t.Context()), lock.ErrLost))
}

type holderProcess struct {
	*exec.Cmd
	output *bufio.Scanner
	token  int64
}

func startHolder(t *testing.T, path string) *holderProcess {
	t.Helper()
	o := &holderProcess{Cmd: exec.Command(os.Args[0], "-test.run", "^TestHelperHoldsRegister$")}
	o.Env = append(os.Environ(), holderEnv+"="+path)
	out, err := o.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	o.output = bufio.NewScanner(out)
	if err := o.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = o.Process.Kill()
		_ = o.Wait()
	})
	if line := o.line(); !strings.HasPrefix(line, "holds ") {
		t.Fatalf("the other process says %q", line)
	} else if _, err := fmt.Sscan(strings.TrimPrefix(line, "holds "), &o.token); err != nil {
		t.Fatal(err)
	}
	return o
}

func (o *holderProcess) line() string {
	o.output.Scan()
	return o.output.Text()
}

// acquireAfter returns a lease that a busy machine cannot lose.
func (o *holderProcess) acquireAfter(t *testing.T, path string) *lock.Lease {
	t.Helper()
	began := time.Now()
	l, err := sqliteMutex(t, path, time.Hour).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > killTTL*105/100+killMargin {
		t.Errorf("the next process acquired the lock after %v", took)
	}
	if l.Token() <= o.token {
		t.Errorf("token %d after %d", l.Token(), o.token)
	}
	return l
}

func TestRegisterHolderKilled(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pawl.db")
	o := startHolder(t, path)
	if err := o.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := o.acquireAfter(t, path).Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestRegisterHolderStopped(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pawl.db")
	o := startHolder(t, path)
	if err := o.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	l := o.acquireAfter(t, path)
	if err := o.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if line := o.line(); line != "context: true, release: true" {
		t.Errorf("the process that was paused printed %q", line)
	}
	if err := l.Context().Err(); err != nil {
		t.Errorf("the next one has lost it: %v", context.Cause(l.Context()))
	}
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
