//go:build unix

package servertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Function is a simulated function of AWS Lambda.
type Function struct {
	Program string
	Env     []string
	Log     *os.File
	Timeout time.Duration

	Invocations, ColdStarts, Killed atomic.Int64
	Memory                          atomic.Int64 // of the largest process, in bytes

	mu     sync.Mutex
	starts []time.Duration // from the start of a process to its first request
}

// Environment runs the invocations of a function one at a time in a process, which it freezes in
// between. It serves https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
type Environment struct {
	*Function
	api     *httptest.Server
	ready   chan struct{} // the process requests an invocation
	work    chan *invocation
	answers chan answer
	cmd     *exec.Cmd // nil if no process runs
	ended   chan error
	lastID  int
}

type invocation struct {
	id       string
	deadline time.Time
	payload  []byte
}

type answer struct {
	id, body string
	failed   bool
}

// EarlyKill kills the process before the deadline.
type EarlyKill struct {
	After time.Duration // since the start of the invocation
	// Freeze suspends the process instead, and kills it at the deadline.
	Freeze bool
}

// ErrKilled is returned if the process was killed.
var ErrKilled = errors.New("the invocation was killed")

// Environment returns an environment without a process.
func (f *Function) Environment(t testing.TB) *Environment {
	t.Helper()
	e := &Environment{Function: f, ready: make(chan struct{}), work: make(chan *invocation), answers: make(chan answer)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", e.serveNext)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/response", e.serveAnswer(false))
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/error", e.serveAnswer(true))
	e.api = httptest.NewServer(mux)
	t.Cleanup(func() {
		e.kill()
		e.api.CloseClientConnections()
		e.api.Close()
	})
	return e
}

func (e *Environment) serveNext(w http.ResponseWriter, r *http.Request) {
	select {
	case e.ready <- struct{}{}:
	case <-r.Context().Done():
		return
	}
	select {
	case in := <-e.work:
		w.Header().Set("Lambda-Runtime-Aws-Request-Id", in.id)
		w.Header().Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(in.deadline.UnixMilli(), 10))
		w.Header().Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:us-east-1:123456789012:function:pawl")
		_, _ = w.Write(in.payload)
	case <-r.Context().Done():
	}
}

func (e *Environment) serveAnswer(failed bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		w.WriteHeader(http.StatusAccepted)
		select {
		case e.answers <- answer{r.PathValue("id"), string(body), failed}:
		case <-r.Context().Done():
		}
	}
}

// Invoke runs one invocation in the process, which it starts if necessary, and then freezes.
func (e *Environment) Invoke(ctx context.Context, payload []byte, c *EarlyKill) (string, error) {
	if err := e.thaw(ctx); err != nil {
		return "", err
	}
	e.Invocations.Add(1)
	e.lastID++
	in := &invocation{id: fmt.Sprintf("%d-%d", e.cmd.Process.Pid, e.lastID), deadline: time.Now().Add(e.Timeout), payload: payload}
	select {
	case e.work <- in:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	var strike, over <-chan time.Time = nil, time.After(time.Until(in.deadline))
	if c != nil {
		strike = time.After(c.After)
	}
	for {
		select {
		case a := <-e.answers:
			if a.id != in.id {
				return "", fmt.Errorf("the function answered invocation %s during %s", a.id, in.id)
			}
			_ = e.cmd.Process.Signal(syscall.SIGSTOP) // thaw notices an ended process
			if a.failed {
				return "", fmt.Errorf("the function failed: %s", a.body)
			}
			return a.body, nil
		case err := <-e.ended:
			e.cmd = nil
			return "", fmt.Errorf("the process ended during an invocation: %v", err)
		case <-strike:
			if !c.Freeze {
				return "", e.kill()
			}
			_ = e.cmd.Process.Signal(syscall.SIGSTOP)
		case <-over:
			return "", e.kill()
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

func (e *Environment) thaw(ctx context.Context) error {
	var began time.Time
	if e.cmd != nil {
		_ = e.cmd.Process.Signal(syscall.SIGCONT)
	} else {
		began = time.Now()
		if err := e.start(); err != nil {
			return err
		}
	}
	select {
	case <-e.ready:
		e.recordStart(began)
		return nil
	case err := <-e.ended:
		e.cmd = nil
		return fmt.Errorf("the process ended before it requested an invocation: %v", err)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (e *Environment) recordStart(began time.Time) {
	if !began.IsZero() {
		e.mu.Lock()
		e.starts = append(e.starts, time.Since(began))
		e.mu.Unlock()
	}
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", e.cmd.Process.Pid))
	var kib int64
	if _, line, ok := strings.Cut(string(b), "VmHWM:"); ok {
		_, _ = fmt.Sscan(line, &kib)
	}
	for most := e.Memory.Load(); kib<<10 > most && !e.Memory.CompareAndSwap(most, kib<<10); most = e.Memory.Load() {
	}
}

// MedianStart returns the median time of a cold start.
func (f *Function) MedianStart() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	slices.Sort(f.starts)
	return f.starts[len(f.starts)/2].Round(time.Millisecond)
}

func (e *Environment) start() error {
	e.ColdStarts.Add(1)
	cmd := exec.Command(e.Program)
	cmd.Env = append(append(os.Environ(), e.Env...), "AWS_LAMBDA_RUNTIME_API="+strings.TrimPrefix(e.api.URL, "http://"))
	cmd.Stdout, cmd.Stderr = e.Log, e.Log
	DieWithParent(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	e.cmd, e.ended = cmd, ended
	return nil
}

func (e *Environment) kill() error {
	if e.cmd != nil {
		e.Killed.Add(1)
		_ = e.cmd.Process.Kill()
		<-e.ended
		e.cmd = nil
	}
	return ErrKilled
}

// LogTail returns the end of the function's log.
func (f *Function) LogTail(t testing.TB) string {
	t.Helper()
	b, err := os.ReadFile(f.Log.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(bytes.TrimSpace(b[max(0, len(b)-4<<10):]))
}
