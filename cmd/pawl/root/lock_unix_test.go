//go:build unix

package root_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/fakes3"
	"github.com/pawlhq/pawl/proof/servertest"
)

const briefTTL = 6 * time.Second

var brief = []string{"--ttl", briefTTL.String()}

type lockFixture struct {
	t   *testing.T
	url string
	env []string
	key string
	dir string
}

func newLockFixtureOn(t *testing.T, h http.HandlerFunc) *lockFixture {
	t.Helper()
	url, env := newStore(t, h)
	return &lockFixture{t: t, url: url, env: env, key: "s3://state/lock", dir: t.TempDir()}
}

func newLockFixture(t *testing.T) *lockFixture {
	// Child processes inherit ignored signals, for example from nohup. Caught signals have their default
	// action in them.
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	t.Cleanup(func() { signal.Stop(heard) })
	s := servertest.MinIO(t, servertest.Options{})
	return &lockFixture{t: t, url: s.Endpoint, key: "s3://" + s.NewBucket(t) + "/lock", dir: t.TempDir(), env: append(os.Environ(),
		"AWS_ACCESS_KEY_ID="+s.AccessKey, "AWS_SECRET_ACCESS_KEY="+s.SecretKey, "AWS_REGION="+s.Region,
		"AWS_ENDPOINT_URL="+s.Endpoint, "XDG_CACHE_HOME="+t.TempDir(),
	)}
}

type holder struct {
	*exec.Cmd
	t      *testing.T
	stdin  io.Closer
	stderr bytes.Buffer
	pipe   *bufio.Reader
	shell  int // process id
}

// The script and its children have one end of a pipe as descriptor 9.
func (f *lockFixture) hold(script string, flags ...string) *holder {
	f.t.Helper()
	fifo := f.fifo()
	h := &holder{t: f.t, Cmd: f.lock(flags, "sh", "-c", `exec 9>"$0"; echo $$ >&9; `+script, fifo)}
	h.Stderr = &h.stderr
	stdin, err := h.StdinPipe()
	if err == nil {
		err = h.Start()
	}
	if err != nil {
		f.t.Fatal(err)
	}
	h.stdin = stdin
	f.t.Cleanup(func() {
		_ = h.Process.Kill()
		_ = h.Process.Signal(syscall.SIGCONT)
	})
	h.open(fifo)
	if h.shell, err = strconv.Atoi(h.line()); err != nil {
		f.t.Fatal(err)
	}
	return h
}

func (f *lockFixture) fifo() string {
	f.t.Helper()
	fifo := filepath.Join(f.dir, "alive")
	_ = os.Remove(fifo)
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		f.t.Fatal(err)
	}
	return fifo
}

func (h *holder) open(fifo string) {
	h.t.Helper()
	other, err := os.OpenFile(fifo, os.O_RDWR, 0) // does not wait for the script
	if err != nil {
		h.t.Fatal(err)
	}
	// Some systems have no deadlines for pipes.
	late := time.AfterFunc(time.Minute, func() { _ = other.Close() })
	defer func() {
		if late.Stop() {
			_ = other.Close()
		}
	}()
	pipe, err := os.Open(fifo)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = pipe.Close() })
	h.pipe = bufio.NewReader(pipe)
	if _, err := h.pipe.Peek(1); err != nil {
		h.gone(err)
	}
}

func (h *holder) gone(err error) {
	h.t.Helper()
	_ = h.Process.Kill()
	_ = h.Wait()
	h.t.Fatalf("the command has ended: %v; %s", err, h.stderr.String())
}

func (f *lockFixture) lock(flags []string, command ...string) *exec.Cmd {
	cmd := exec.Command("pawl", slices.Concat([]string{"lock"}, flags, []string{f.key, "--"}, command)...)
	cmd.Env = f.env
	servertest.DieWithParent(cmd)
	return cmd
}

func (h *holder) line() string {
	h.t.Helper()
	s, err := h.pipe.ReadString('\n')
	if err != nil {
		h.gone(err)
	}
	return strings.TrimSpace(s)
}

func (h *holder) waitForCommand() time.Time {
	h.t.Helper()
	if _, err := io.ReadAll(h.pipe); err != nil {
		h.t.Fatal(err)
	}
	return time.Now()
}

func (h *holder) exits(code int, says string) {
	h.t.Helper()
	err := h.Wait()
	exit, ok := errors.AsType[*exec.ExitError](err)
	got := 0
	if ok {
		got = exit.ExitCode()
	} else if err != nil {
		h.t.Fatal(err)
	}
	if got != code || !strings.Contains(h.stderr.String(), says) {
		h.t.Errorf("exit code %d, want %d and %q: %s", got, code, says, h.stderr.String())
	}
}

// The channel receives the time when the waiter has the lock. All processes of the previous command must
// have ended by then.
func (f *lockFixture) startWaiter() <-chan time.Time {
	f.t.Helper()
	cmd := f.lock(nil, "entered", filepath.Join(f.dir, "alive"))
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		f.t.Fatal(err)
	}
	at := make(chan time.Time, 1)
	go func() {
		if s, err := bufio.NewReader(out).ReadString('\n'); err != nil || s != "alone\n" {
			f.t.Errorf("the waiter printed %q, %v", s, err)
		}
		at <- time.Now()
		if err := cmd.Wait(); err != nil {
			f.t.Errorf("the waiter: %v", err)
		}
	}()
	return at
}

// checkEntered prints whether any process has the other end of a pipe open. Comparing times of two
// processes is unreliable.
func checkEntered() {
	says := "alone"
	n := 0
	pipe, err := syscall.Open(os.Args[1], syscall.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err == nil {
		n, err = syscall.Read(pipe, make([]byte, 1))
	}
	if n > 0 || err != nil { // the pipe has data, or a process has it open
		says = fmt.Sprint("beside the other: ", err)
	}
	fmt.Println(says)
}

const stubborn = `trap "" TERM; sleep 600 & echo set >&9; sleep 600`

// margin allows for a busy machine.
const margin = 4 * time.Second

// inTime tries again if the machine may have paused.
func inTime(t *testing.T, limit time.Duration, try func() time.Duration) {
	t.Helper()
	took := try()
	for n := 1; took > limit+margin && n < 3; n++ {
		t.Logf("try %d took %v", n, took)
		took = try()
	}
	if took > limit+margin {
		t.Errorf("it took %v, want at most %v", took, limit)
	}
}

func TestHolderKilled(t *testing.T) {
	t.Parallel()
	inTime(t, briefTTL*105/100, func() time.Duration {
		f := newLockFixture(t)
		h := f.hold(stubborn, brief...)
		h.line()
		entered := f.startWaiter()
		if err := h.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		killed := time.Now()
		died, in := h.waitForCommand(), <-entered
		t.Logf("command dead after %v, lock acquired after %v", died.Sub(killed), in.Sub(killed))
		_ = h.Wait()
		return in.Sub(killed)
	})
}

func (f *lockFixture) stopUntilTakeover(h *holder) {
	f.t.Helper()
	if err := h.Process.Signal(syscall.SIGSTOP); err != nil {
		f.t.Fatal(err)
	}
	entered := f.startWaiter()
	h.waitForCommand()
	<-entered
	if err := h.Process.Signal(syscall.SIGCONT); err != nil {
		f.t.Fatal(err)
	}
	h.exits(76, "the lock was lost")
}

func TestHolderStopped(t *testing.T) {
	t.Parallel()
	for _, onLost := range []string{"terminate", "kill"} {
		t.Run(onLost, func(t *testing.T) {
			f := newLockFixture(t)
			h := f.hold(stubborn, append(brief, "--on-lost", onLost)...)
			h.line()
			f.stopUntilTakeover(h)
		})
	}
}

func TestTerminationGrace(t *testing.T) {
	t.Parallel()
	for onLost, says := range map[string]string{"terminate": "cleaned up\n", "kill": ""} {
		t.Run(onLost, func(t *testing.T) {
			t.Parallel() // until the next renewal
			f := newLockFixture(t)
			h := f.hold(`echo $PAWL_LOCK_TOKEN >&9; trap "echo cleaned up >&9; exit" TERM; while :; do sleep 600 & wait; done`,
				"--ttl", "1m", "--on-lost", onLost)
			release := f.lock(nil)
			release.Args = []string{"pawl", "lock", "release", f.key, "--token", h.line()}
			if out, err := release.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if said, err := io.ReadAll(h.pipe); err != nil || string(said) != says {
				t.Errorf("the command printed %q, %v, want %q", said, err, says)
			}
			h.exits(76, "the command was ended")
		})
	}
}

// The command of a holder is another holder, with its own guard and process group.
func TestNestedLock(t *testing.T) {
	t.Parallel()
	f := newLockFixture(t)
	h := f.hold(`exec pawl lock `+f.key+`-inner -- sh -c '`+stubborn+`'`, brief...)
	h.line()
	f.stopUntilTakeover(h)
}

func TestHolderStoppedBriefly(t *testing.T) {
	f := newLockFixture(t)
	h := f.hold(`read line; exit 4`)
	for _, s := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		if err := h.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	_ = h.stdin.Close()
	h.exits(4, "")
}

func TestNothingOutlivesTheLock(t *testing.T) {
	f := newLockFixture(t)
	h := f.hold(`trap "" TERM INT; sleep 600 & exit 5`)
	h.waitForCommand()
	h.exits(5, "")
	if in := <-f.startWaiter(); in.IsZero() { // released
		t.Error("the waiter did not acquire the lock")
	}
}

func TestGuardKilled(t *testing.T) {
	f := newLockFixture(t)
	h := f.hold(stubborn)
	h.line()
	guard, err := syscall.Getpgid(h.shell)
	if err != nil || guard == h.shell || guard == h.Process.Pid {
		t.Fatalf("the command's group is %d: %v", guard, err)
	}
	if err := syscall.Kill(guard, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	h.waitForCommand()
	h.exits(1, "guards the command has ended")
}

func TestSignals(t *testing.T) {
	f := newLockFixture(t)
	h := f.hold(`for s in INT HUP QUIT USR1 USR2; do trap "echo $s >&9" $s; done
		trap "echo TERM >&9; exit 3" TERM
		echo set >&9; while :; do sleep 600 & wait; done`)
	h.line()
	waiting := f.lock(nil, "true")
	var said bytes.Buffer
	waiting.Stderr = &said
	if err := waiting.Start(); err != nil {
		t.Fatal(err)
	}
	for _, s := range []struct {
		name string
		syscall.Signal
	}{
		{"INT", syscall.SIGINT}, {"HUP", syscall.SIGHUP}, {"QUIT", syscall.SIGQUIT}, {"USR1", syscall.SIGUSR1},
		{"USR2", syscall.SIGUSR2}, {"TERM", syscall.SIGTERM},
	} {
		if err := h.Process.Signal(s.Signal); err != nil {
			t.Fatal(err)
		}
		if got := h.line(); got != s.name {
			t.Errorf("the command got %s, want %s", got, s.name)
		}
	}
	h.exits(3, "")
	if err := waiting.Wait(); err != nil {
		t.Errorf("the waiter: %v: %s", err, said.String())
	}
}

func TestSignalWhileWaiting(t *testing.T) {
	looks := make(chan string, 100) // paths of locks that were read
	below := fakes3.New()
	f := newLockFixtureOn(t, func(w http.ResponseWriter, r *http.Request) {
		below.ServeHTTP(w, r)
		if r.Method == http.MethodGet {
			select {
			case looks <- r.URL.Path:
			default:
			}
		}
	})
	for s, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGUSR1: 138} {
		path := fmt.Sprintf("/state/lock-%d", s) // a separate lock for each signal
		f.key = "s3:/" + path
		h := f.hold("read line; exit 0")
		for len(looks) > 0 {
			<-looks // by the holder
		}
		waiting := f.lock(nil, "true")
		if err := waiting.Start(); err != nil {
			t.Fatal(err)
		}
		for path != <-looks {
		}
		if err := waiting.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		_ = waiting.Wait() // checked below
		if got := waiting.ProcessState.ExitCode(); got != code {
			t.Errorf("%v: exit code %d, want %d", s, got, code)
		}
		_ = h.stdin.Close()
		h.exits(0, "")
	}
}
