package root_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/fakes3"
)

// The fake store calls before with each request.
func newFakeLockFixture(t *testing.T, before func(*http.Request)) *lockFixture {
	below := fakes3.New()
	return newLockFixtureOn(t, func(w http.ResponseWriter, r *http.Request) {
		before(r)
		below.ServeHTTP(w, r)
	})
}

func plainLockFixture(t *testing.T) *lockFixture {
	return newFakeLockFixture(t, func(*http.Request) {})
}

// timeout puts itself and its child in a group of their own, and forwards signals. A signal that arrives
// before timeout sleeps ends only timeout, because it does not know its child's process ID yet.
const leavesGroup = `exec timeout 600 sh -c 'until grep -q "^State:.S" /proc/$PPID/status; do :; done; echo set >&9; while :; do sleep 600 & wait; done'`

func TestSignalReachesCommandOutsideTheGroup(t *testing.T) {
	h := plainLockFixture(t).hold(leavesGroup)
	h.line()
	if err := h.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	h.waitForCommand()
	h.exits(143, "")
}

func TestLostLockEndsCommandOutsideTheGroup(t *testing.T) {
	f := plainLockFixture(t)
	h := f.hold(`echo $PAWL_LOCK_TOKEN >&9; `+leavesGroup, "--ttl", "12s") // the next renewal fails
	token := h.line()
	h.line()
	release := f.lock(nil)
	release.Args = []string{"pawl", "lock", "release", f.key, "--token", token}
	if out, err := release.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	h.waitForCommand()
	h.exits(76, "the command was ended")
}

// A daemon of the command still runs when the lock is released.
func TestProcessOutsideTheGroupOutlivesTheLock(t *testing.T) {
	f := plainLockFixture(t)
	goOn := filepath.Join(f.dir, "go-on")
	if err := syscall.Mkfifo(goOn, 0o600); err != nil {
		t.Fatal(err)
	}
	h := f.hold(`setsid sh -c 'echo set >&9; read line <"$0"; echo "$line" >&9' ` + goOn + ` >/dev/null 2>&1 & read line; exit 5`)
	h.line()
	_ = h.stdin.Close()
	h.exits(5, "")
	if out, err := f.lock([]string{"--wait", "0"}, "true").CombinedOutput(); err != nil {
		t.Errorf("the lock was not released: %v: %s", err, out)
	}
	daemon, err := os.OpenFile(goOn, os.O_RDWR, 0) // does not block if the daemon is gone
	if err != nil {
		t.Fatal(err)
	}
	defer daemon.Close()
	if _, err := daemon.WriteString("alive\n"); err != nil {
		t.Fatal(err)
	}
	if got := h.line(); got != "alive" {
		t.Errorf("the daemon wrote %q", got)
	}
}

func TestStoppedCommandEnds(t *testing.T) {
	h := plainLockFixture(t).hold(`trap "exit 3" TERM; echo set >&9; kill -STOP $$; while :; do sleep 600 & wait; done`)
	h.line()
	if err := h.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	h.waitForCommand()
	h.exits(3, "")
}

func TestContinuedCommand(t *testing.T) {
	h := plainLockFixture(t).hold(`echo set >&9; kill -STOP $$; exit 6`)
	h.line()
	stop := make(chan struct{})
	defer close(stop)
	go func() { // the stop may still be pending
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_ = h.Process.Signal(syscall.SIGCONT)
			case <-stop:
				return
			}
		}
	}()
	h.waitForCommand()
	h.exits(6, "")
}

// The store responds to no request, or to all requests except those about the lock.
func TestUnresponsiveStore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		silent string // prefix of paths
		wait   string
		limit  time.Duration
		code   int
	}{
		// If the store check gets no response, its cleanup takes 2 s more. In the other cases
		// the store check succeeds, and the command must exit when --wait is over.
		{"/", "0", 12 * time.Second, 69}, {"/", "1s", 3 * time.Second, 69},
		{"/state/lock", "0", 10 * time.Second, 69}, {"/state/lock", "6s", 6 * time.Second, 69},
	} {
		t.Run(c.silent+" "+c.wait, func(t *testing.T) {
			t.Parallel()
			inTime(t, c.limit, func() time.Duration {
				over := make(chan struct{})
				f := newFakeLockFixture(t, func(r *http.Request) {
					if strings.HasPrefix(r.URL.Path, c.silent) && r.URL.Path != "/state" {
						<-over
					}
				})
				t.Cleanup(func() { close(over) })
				h := &holder{t: t, Cmd: f.lock([]string{"--wait", c.wait}, "true")}
				h.Stderr = &h.stderr
				begun := time.Now()
				if err := h.Start(); err != nil {
					t.Fatal(err)
				}
				h.exits(c.code, "")
				t.Log(h.stderr.String())
				return time.Since(begun)
			})
		})
	}
}

// The diagnosis must be the same, no matter whether the holder or its guard detects the outage first.
func TestStoreOutageWhileHeld(t *testing.T) {
	t.Parallel()
	const ttl = 12 * time.Second                      // allows for pauses between two renewals
	inTime(t, ttl+time.Second, func() time.Duration { // a second for the release
		var gone atomic.Bool
		f := newFakeLockFixture(t, func(*http.Request) {
			if gone.Load() {
				panic(http.ErrAbortHandler)
			}
		})
		var holders []*holder
		for i := range 4 {
			f.key = fmt.Sprint("s3://state/lock-", i)
			h := f.hold("echo set >&9; sleep 600", "--ttl", ttl.String())
			h.line()
			holders = append(holders, h)
		}
		gone.Store(true)
		begun := time.Now()
		for _, h := range holders {
			h.exits(76, "it could not be renewed within its TTL of 12s")
		}
		return time.Since(begun)
	})
}

func TestUpdateInterruptedDuringWrite(t *testing.T) {
	below := fakes3.New()
	written, over := make(chan struct{}, 100), make(chan struct{})
	f := newLockFixtureOn(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && r.URL.Path == "/state/lock" {
			below.ServeHTTP(httptest.NewRecorder(), r)
			written <- struct{}{}
			<-over
			return
		}
		below.ServeHTTP(w, r)
	})
	t.Cleanup(func() { close(over) })
	h := f.command("update", "--create", f.key, "--", "echo", "1")
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	<-written
	if err := h.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	h.exits(74, "unknown whether the update was applied")
}

func TestUpdateEndsItsFilter(t *testing.T) {
	t.Parallel()
	f := plainLockFixture(t)
	fifo := f.fifo()
	h := f.command("update", "--create", f.key, "--", "sh", "-c", `exec 9>"$0"; sh -c 'trap "" TERM; echo set >&9; sleep 600'; true`, fifo)
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	h.open(fifo)
	h.line()
	if err := h.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	h.waitForCommand()
	h.exits(143, "was ended")
}

func TestInterruptedUpdateWritesNothing(t *testing.T) {
	f := plainLockFixture(t)
	fifo := f.fifo()
	h := f.command("update", "--create", f.key, "--", "sh", "-c",
		`exec 9>"$0"; trap "echo partial; exit 0" TERM INT; echo set >&9; while :; do sleep 600 & wait; done`, fifo)
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	h.open(fifo)
	h.line()
	if err := h.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	h.exits(130, "was ended")
	missing := f.command("update", f.key, "--", "cat")
	if err := missing.Start(); err != nil {
		t.Fatal(err)
	}
	missing.exits(1, "object not found")
}
