package servertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

const (
	startTries   = 5               // another program may take the free port
	startTimeout = 3 * time.Minute // for a busy machine
	pollEvery    = 20 * time.Millisecond
)

type process struct {
	out    output
	exited chan struct{}
}

// launch sets s.Endpoint, and waits until the server accepts the keys of s.
func launch(t testing.TB, s *Server, command func(addr string) *exec.Cmd) {
	t.Helper()
	start(t, s.Name, func(addr string) *exec.Cmd {
		s.Endpoint = "http://" + addr
		return command(addr)
	}, s.ready)
}

func (s *Server) ready(ctx context.Context) error {
	_, err := s.Client().ListBuckets(ctx, &s3.ListBucketsInput{}, func(o *s3.Options) { o.RetryMaxAttempts = 1 })
	return err
}

// start starts a command for a free port and calls ready until it succeeds.
func start(t testing.TB, name string, command func(addr string) *exec.Cmd, ready func(context.Context) error) {
	t.Helper()
	var err error
	for range startTries {
		addr, perr := FreeAddress()
		if perr != nil {
			t.Fatalf("find a port for %s: %v", name, perr)
		}
		if err = startOnce(t, name, command(addr), ready); err == nil {
			return
		}
		if !errors.Is(err, errExited) {
			break
		}
	}
	t.Fatalf("start %s: %v", name, err)
}

var errExited = errors.New("the process exited at once")

func startOnce(t testing.TB, name string, cmd *exec.Cmd, ready func(context.Context) error) error {
	p := &process{exited: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.out, &p.out
	DieWithParent(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		_ = cmd.Wait()
		close(p.exited)
	}()
	end := func() {
		_ = cmd.Process.Kill()
		<-p.exited
	}
	if err := poll(t.Context(), p.exited, ready); err != nil {
		end()
		return fmt.Errorf("%w; output:\n%s", err, p.out.String())
	}
	t.Cleanup(func() {
		end()
		if t.Failed() {
			t.Logf("output of %s:\n%s", name, p.out.String())
		}
	})
	return nil
}

// poll stops if exited is closed, or after startTimeout.
func poll(ctx context.Context, exited <-chan struct{}, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := f(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-exited:
			return errExited
		case <-ctx.Done():
			return fmt.Errorf("not ready within %s: %w", startTimeout, err)
		case <-tick.C:
		}
	}
}

var (
	firstPort = rand.IntN(ports)
	portsUsed atomic.Int64
)

const ports = 20_000

// FreeAddress returns a loopback address with a port that systems do not assign automatically, so that
// probably no other process takes it. No other call in this process returns it soon.
func FreeAddress() (string, error) {
	var err error
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 10_000+(firstPort+int(portsUsed.Add(1)))%ports)
		var l net.Listener
		if l, err = net.Listen("tcp", address); err == nil {
			return address, l.Close()
		}
	}
	return "", err
}

// environment omits the proxies and credentials of the developer.
func environment(dir string, vars ...string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir}, vars...)
}

// output stores the end of a server's output.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

const keepOutput = 32 << 10

// Write implements [io.Writer].
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buf.Write(b)
	if excess := o.buf.Len() - keepOutput; excess > 0 {
		o.buf.Next(excess)
	}
	return len(b), nil
}

// String returns the stored output.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}
