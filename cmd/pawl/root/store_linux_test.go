package root_test

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func (f *lockFixture) command(args ...string) *holder {
	h := &holder{t: f.t, Cmd: f.lock(nil)}
	h.Args = append([]string{"pawl"}, args...)
	h.Stderr = &h.stderr
	return h
}

func TestListLocksOfUnresponsiveStore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		silent string // prefix of paths
		args   []string
		limit  time.Duration
	}{
		{"ls", "/", []string{"lock", "ls", "s3://state/"}, 10 * time.Second},
		{"ls of the unread", "/state/", []string{"lock", "ls", "s3://state/"}, 10 * time.Second},
		{"show", "/", []string{"lock", "show", "s3://state/lock"}, 10 * time.Second},
		{"release", "/", []string{"lock", "release", "s3://state/lock", "--token", "1"}, 12 * time.Second},
		{"release by id", "/", []string{"lock", "release", "s3://state/lock", "--id", "x"}, 10 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inTime(t, c.limit, func() time.Duration {
				var silent atomic.Bool
				over := make(chan struct{})
				f := newFakeLockFixture(t, func(r *http.Request) {
					if silent.Load() && strings.HasPrefix(r.URL.Path, c.silent) {
						<-over
					}
				})
				t.Cleanup(func() { close(over) })
				for _, key := range []string{"/state/lock", "/state/other"} {
					if err := send(http.MethodPut, f.url+key, "x"); err != nil {
						t.Fatal(err)
					}
				}
				silent.Store(true)
				h := f.command(c.args...)
				begun := time.Now()
				if err := h.Start(); err != nil {
					t.Fatal(err)
				}
				h.exits(69, "store unavailable")
				t.Log(h.stderr.String())
				return time.Since(begun)
			})
		})
	}
}

func TestStoreOutageEnds(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"lock":             {"lock", "s3://state/lock", "--", "true"},
		"lock with --wait": {"lock", "--wait", "1m", "s3://state/lock", "--", "true"},
		"update":           {"update", "--create", "s3://state/object", "--", "echo", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var there atomic.Bool
			f := newFakeLockFixture(t, func(r *http.Request) {
				if !there.Load() && r.URL.Path != "/state" {
					panic(http.ErrAbortHandler)
				}
			})
			h := f.command(args...)
			h.Stderr = nil
			said, err := h.StderrPipe()
			if err == nil {
				err = h.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewReader(said)
			line, err := lines.ReadString('\n')
			if err != nil || !strings.HasPrefix(line, "pawl: waiting for the store: ") {
				t.Errorf("output %q, %v", line, err)
			}
			there.Store(true)
			if more, err := io.ReadAll(lines); err != nil || len(more) > 0 {
				t.Errorf("further output: %q, %v", more, err)
			}
			h.exits(0, "")
		})
	}
}

func TestStoreOutageLasts(t *testing.T) {
	t.Parallel()
	// A store check takes up to 9 seconds: it retries its reads three times, with random delays, and cleans
	// up.
	for wait, waits := range map[string]bool{"0": false, "20s": true} {
		t.Run(wait, func(t *testing.T) {
			t.Parallel()
			inTime(t, 22*time.Second, func() time.Duration {
				f := newFakeLockFixture(t, func(r *http.Request) {
					if r.URL.Path != "/state" {
						panic(http.ErrAbortHandler)
					}
				})
				h := f.command("lock", "--wait", wait, "s3://state/lock", "--", "true")
				begun := time.Now()
				if err := h.Start(); err != nil {
					t.Fatal(err)
				}
				h.exits(69, "")
				took := time.Since(begun)
				if got := strings.Contains(h.stderr.String(), "waiting for the store"); got != waits {
					t.Errorf("got %v: %s", got, h.stderr.String())
				}
				if waits && took < 20*time.Second {
					t.Errorf("the command took %v", took)
				}
				return took
			})
		})
	}
}

// The write must not be reported as failed.
func TestUpdateWithoutOutput(t *testing.T) {
	f := plainLockFixture(t)
	for _, want := range []struct {
		filter string
		code   int
		says   string
	}{{"echo 1", 74, "s3://state/object was written, but its result could not be printed"}, {"cat", 1, "print JSON"}} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		h := f.command("update", "--json", "--create", "s3://state/object", "--", "sh", "-c", want.filter)
		h.Stdout = full
		if err := h.Start(); err != nil {
			t.Fatal(err)
		}
		h.exits(want.code, want.says)
		_ = full.Close() // no data was written
	}
}

func TestUpdateEndsFilterProcesses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		code   int
		says   string
	}{
		"output open":      {`echo set >&9; sleep 600 & echo 1`, 1, "left a process that holds its output open"},
		"output too large": {`echo set >&9; sleep 600 >/dev/null & yes`, 64, "printed more than"},
	} {
		t.Run(name, func(t *testing.T) {
			f := plainLockFixture(t)
			fifo := f.fifo()
			h := f.command("update", "--create", f.key, "--", "sh", "-c", `exec 9>"$0"; `+c.script, fifo)
			if err := h.Start(); err != nil {
				t.Fatal(err)
			}
			h.open(fifo)
			h.waitForCommand()
			h.exits(c.code, c.says)
		})
	}
}
