//go:build unix

package execaction

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/action/internal/actiontest"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/virtualtime"
	"github.com/pawlhq/pawl/worker"
)

func shell(t *testing.T, script string, input io.Reader, output io.Writer) *execution {
	t.Helper()
	h, err := newHandler(Config{Command: []string{"sh", "-c", script}})
	if err != nil {
		t.Fatal(err)
	}
	h.grace = time.Minute // a slow machine needs time to copy the output of a command that has exited
	return &execution{handler: h, content: input, output: output, stopReading: func() {}}
}

func TestExitStatus(t *testing.T) {
	for _, tt := range []struct {
		script    string
		want      string // part of the error
		permanent bool
	}{
		{"exit 0", "", false},
		{"echo not a csv >&2; exit 65", "sh rejected its input: exit status 65: not a csv", true},
		{"echo ' come\tback\n\033[2Jlater' >&2; exit 1", "sh failed: exit status 1: come back .[2Jlater", false},
		{"exit 64", "sh failed: exit status 64", false},
		{"exit 66", "sh failed: exit status 66", false},
		{"exit 255", "sh failed: exit status 255", false},
		{"kill -SEGV $$", "sh failed: signal: segmentation fault", false},
		{"kill -TERM $$", "sh failed: signal: terminated", false},
	} {
		t.Run(tt.script, func(t *testing.T) {
			err := shell(t, tt.script, strings.NewReader("x"), io.Discard).execute(t.Context())
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.want)) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if worker.IsPermanent(err) != tt.permanent {
				t.Errorf("%v: permanent is %v", err, !tt.permanent)
			}
		})
	}
}

func TestOutages(t *testing.T) {
	for script, c := range map[string]struct {
		cause string
		want  int
	}{
		"exit 1":        {"exit status 1", 5},
		"exit 75":       {"exit status 75", 5},
		"kill -SEGV $$": {"signal: segmentation fault", 5},
		"exit 65":       {"exit status 65", 0},
	} {
		err := shell(t, script, nil, nil).execute(t.Context())
		if got := actiontest.SharedBy(err, c.cause); err == nil || got != c.want {
			t.Errorf("%s: %v: an outage after %d objects, want %d", script, err, got, c.want)
		}
	}
}

func TestErrorHasTheEndOfStderr(t *testing.T) {
	err := shell(t, "head -c 100000 /dev/zero | tr '\\0' x >&2; echo the end >&2; exit 3", nil, nil).execute(t.Context())
	if err == nil || !strings.HasSuffix(err.Error(), "xxthe end") || len(err.Error()) > 600 {
		t.Errorf("error %v", err)
	}
}

func TestContentIsCopied(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef\x00\xff"), 200_000)
	var out bytes.Buffer
	if err := shell(t, "cat", bytes.NewReader(content), &out).execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.Bytes(), content) {
		t.Errorf("got %d bytes of %d, or different ones", out.Len(), len(content))
	}
	out.Reset()
	if err := shell(t, "wc -c", nil, &out).execute(t.Context()); err != nil || strings.TrimSpace(out.String()) != "0" {
		t.Errorf("without content: %q, %v", out.String(), err)
	}
}

func TestCommandNeedNotReadItsInput(t *testing.T) {
	many := bytes.NewReader(make([]byte, 10<<20))
	for _, script := range []string{"true", "exec <&-; true", "head -c 10 >/dev/null"} {
		if err := shell(t, script, many, io.Discard).execute(t.Context()); err != nil {
			t.Errorf("%s: %v", script, err)
		}
	}
	// The command may exit before the store has sent everything.
	r, w := io.Pipe()
	run := shell(t, "true", r, io.Discard)
	run.stopReading = func() { w.CloseWithError(context.Canceled) }
	if err := run.execute(t.Context()); err != nil {
		t.Error(err)
	}
}

type firstWrite struct {
	bytes.Buffer
	first chan struct{}
}

func newFirstWrite() *firstWrite { return &firstWrite{first: make(chan struct{})} }

func (s *firstWrite) Write(b []byte) (int, error) {
	if s.Len() == 0 {
		close(s.first)
	}
	return s.Buffer.Write(b)
}

func TestTruncatedInputFailsTheAttempt(t *testing.T) {
	reset := errors.New("connection reset")
	whole := filepath.Join(t.TempDir(), "whole")
	out := newFirstWrite()
	// after the command has received the first half
	afterwards := readerFunc(func([]byte) (int, error) { <-out.first; return 0, reset })
	in := io.MultiReader(strings.NewReader("half"), afterwards)
	err := shell(t, "head -c 4; cat; touch "+whole, in, out).execute(t.Context())
	if !errors.Is(err, reset) || worker.IsPermanent(err) {
		t.Errorf("error %v, want the store's", err)
	}
	if _, err := os.Stat(whole); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the command read the end of its input (%v)", err)
	}
	// A command that exits with 0 after SIGTERM has failed.
	err = shell(t, "trap 'exit 0' TERM; cat; :", iotest.ErrReader(reset), io.Discard).execute(t.Context())
	if !errors.Is(err, reset) {
		t.Errorf("error %v, want the store's", err)
	}
}

// gone fails the test if a process of the script still has the pipe at path open.
func processWatch(t *testing.T) (path string, gone func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "witness")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0) // does not wait for the other side
	if err != nil {
		t.Fatal(err)
	}
	r, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return path, func() {
		t.Helper()
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if err := r.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, r); err != nil {
			t.Errorf("a process of the command is still alive: %v", err)
		}
	}
}

func TestLostLeaseEndsTheWholeGroup(t *testing.T) {
	for name, script := range map[string]string{
		"willing":              "echo ready; sleep 1000",
		"child in background":  "sleep 1000 & echo ready; sleep 1000",
		"deaf":                 "trap '' TERM; echo ready; sleep 1000; sleep 1000",
		"deaf child":           "(trap '' TERM; echo ready; sleep 1000) & wait",
		"ends with 65 on TERM": "trap 'exit 65' TERM; echo ready; sleep 1000 & wait",
		"ends with 0 on TERM":  "trap 'exit 0' TERM; echo ready; sleep 1000 & wait",
	} {
		t.Run(name, func(t *testing.T) {
			path, gone := processWatch(t)
			out := newFirstWrite()
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() {
				<-out.first
				cancel(pawl.ErrLeaseLost)
			}()
			r := shell(t, "exec 9>"+path+"; "+script, nil, out)
			r.grace = 100 * time.Millisecond
			err := r.execute(ctx)
			if !errors.Is(err, pawl.ErrLeaseLost) || worker.IsPermanent(err) {
				t.Errorf("error %v, want the cause", err)
			}
			gone()
		})
	}
}

func TestTimeout(t *testing.T) {
	path, gone := processWatch(t)
	r := shell(t, "exec 9>"+path+"; sleep 1000", nil, nil)
	r.timeout = 50 * time.Millisecond
	err := r.execute(t.Context())
	if err == nil || !strings.Contains(err.Error(), "sh was stopped: it ran longer than 50ms (timeout)") || worker.IsPermanent(err) {
		t.Errorf("error %v", err)
	}
	gone()
}

func TestRemainingProcessesAreKilled(t *testing.T) {
	path, gone := processWatch(t)
	script := "exec 9>" + path + "; sleep 1000 & echo done"
	execute := func(output io.Writer) error {
		r := shell(t, script, nil, output)
		r.grace = 100 * time.Millisecond
		return r.execute(t.Context())
	}
	if err := execute(nil); err != nil {
		t.Errorf("without an output: %v", err)
	}
	err := execute(io.Discard)
	if err == nil || !strings.Contains(err.Error(), "left a process that keeps its output open") {
		t.Errorf("with an output that was still open: error %v", err)
	}
	gone()
}

func TestKillAllEndsEveryGroup(t *testing.T) {
	path, gone := processWatch(t)
	var g processGroups
	out := newFirstWrite()
	cmd := exec.Command("sh", "-c", "exec 9>"+path+"; trap '' TERM; echo ready; sleep 1000; cat")
	cmd.Stdout = writerFunc(out.Write)
	release := isolate(cmd)
	defer release()
	if err := g.start(cmd); err != nil {
		t.Fatal(err)
	}
	<-out.first
	g.killAll()
	if err := cmd.Wait(); err == nil {
		t.Error("the command succeeded")
	}
	gone()
	if err := g.start(exec.Command("true")); !errors.Is(err, errClosed) {
		t.Errorf("another command starts: %v", err)
	}
}

func TestKilledCommandsReportNothing(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		var g processGroups
		g.waitIfExiting(t.Context()) // returns at once
		g.killAll()
		ctx, cancel := context.WithCancel(t.Context())
		back := false
		go func() {
			g.waitIfExiting(ctx)
			back = true
		}()
		synctest.Wait()
		if back {
			t.Error("waitIfExiting did not wait")
		}
		cancel()
		synctest.Wait()
		if !back {
			t.Error("waitIfExiting did not return when its context ended")
		}
	})
}

func TestOutputWriteError(t *testing.T) {
	full := errors.New("disk full")
	out := writerFunc(func([]byte) (int, error) { return 0, full })
	for _, script := range []string{"yes", "echo x"} {
		if err := shell(t, script, nil, out).execute(t.Context()); !errors.Is(err, full) {
			t.Errorf("%s: error %v, want the writer's", script, err)
		}
	}
}

func task(o event.Object) *pawl.Task {
	return &pawl.Task{Pipeline: "p", Object: o, Kind: event.Removed, Info: bucket.Info{}, Attempt: 3, Fence: 77, IdempotencyKey: "00ff"}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("PASSED", "on")
	t.Setenv("TZ", "UTC")
	t.Setenv("PATH", os.Getenv("PATH"))
	file := filepath.Join(t.TempDir(), "env")
	h, err := New(Config{Command: []string{"sh", "-c", `env -0 > "$OUT"`}, Env: []string{"PASSED", "OUT=" + file, "EMPTY=", "NOT_THERE_AT_ALL"}})
	if err != nil {
		t.Fatal(err)
	}
	key := "a b\n=\xff\"$HOME`;"
	if err := h.Handle(t.Context(), task(event.Object{Bucket: "b", Key: key, VersionID: "v"})); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(b), "\x00"), "\x00") {
		name, value, _ := strings.Cut(entry, "=")
		got[name] = value
	}
	want := map[string]string{
		"PAWL_PIPELINE": "p", "PAWL_BUCKET": "b", "PAWL_KEY": key, "PAWL_KIND": "removed", "PAWL_ETAG": "", "PAWL_VERSION_ID": "v",
		"PAWL_SIZE": "0", "PAWL_FENCE": "77", "PAWL_ATTEMPT": "3", "PAWL_IDEMPOTENCY_KEY": "00ff",
		"PASSED": "on", "OUT": file, "EMPTY": "", "TZ": "UTC", "PATH": os.Getenv("PATH"),
	}
	for _, name := range inherited {
		if value, ok := os.LookupEnv(name); ok {
			want[name] = value
		}
	}
	for _, own := range []string{"PWD", "OLDPWD", "SHLVL", "_"} { // set by the shell
		delete(got, own)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

func TestNULInKeyIsPermanent(t *testing.T) {
	h, err := New(Config{Command: []string{"true"}})
	if err != nil {
		t.Fatal(err)
	}
	err = h.Handle(t.Context(), task(event.Object{Bucket: "b", Key: "a\x00b"}))
	if !worker.IsPermanent(err) || !strings.Contains(err.Error(), `"s3://b/a\x00b": PAWL_KEY holds a NUL byte`) {
		t.Errorf("error %v", err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for want, c := range map[string]Config{
		"command is missing":        {},
		"no-such-program-anywhere":  {Command: []string{"no-such-program-anywhere"}},
		"timeout":                   {Command: []string{"true"}, Timeout: -1},
		"an entry has no name":      {Command: []string{"true"}, Env: []string{"=x"}},
		"or a NUL byte":             {Command: []string{"true"}, Env: []string{"A=\x00"}},
		"PAWL_KEY: names that beg":  {Command: []string{"true"}, Env: []string{"PAWL_KEY=x"}},
		"PAWL_OTHER: names that be": {Command: []string{"true"}, Env: []string{"PAWL_OTHER"}},
	} {
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New(%+v): error %v, want %q", c, err, want)
		}
	}
}

func TestTail(t *testing.T) {
	var tl tail
	var all []byte
	for i := range 400 {
		b := fmt.Appendf(nil, "%0*d,", i%7, i)
		all = append(all, b...)
		if n, err := tl.Write(b); n != len(b) || err != nil {
			t.Fatal(n, err)
		}
		if want := all[max(0, len(all)-500):]; !bytes.Equal(tl.last, want) {
			t.Fatalf("after %d writes: %q, want %q", i+1, tl.last, want)
		}
	}
	if _, _ = tl.Write(make([]byte, 2000)); len(tl.last) != 500 {
		t.Errorf("%d bytes retained", len(tl.last))
	}
}
