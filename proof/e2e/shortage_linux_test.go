package e2e

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/proof/servertest"
)

// The shortage exceeds the webhook's answer timeout of 30 seconds, so that the timeout would show.
var shortage = flag.Duration("shortage", 35*time.Second, "duration of a shortage")

const shortageConfig = `
ledger: sqlite:%s/pawl.db
objects: {endpoint: %q, region: %s, path_style: true}
sources:
  - webhook: {listen: %q, path: /events}
pipelines:
  - name: upper
    match: {bucket: %s}
    exec: {command: [sh, -c, 'sleep %d; exec tr a-z A-Z'], to: s3://%s/up/}
retry: {attempts: 2, base: 100ms, max: 1s}
`

// Bursts exceed the concurrency of a process under shortage.
const burst = 25

func TestShortages(t *testing.T) {
	binary := build(t)
	for name, c := range map[string]struct {
		start func(ctx context.Context, t *testing.T, dir string, command ...string) *exec.Cmd
		// take holds a resource until ctx ends.
		take   func(s *shortageTest, ctx context.Context) error
		work   int // seconds per task
		bursts int
		says   string
		code   int // status that must have been answered
	}{
		"disk": {
			func(ctx context.Context, t *testing.T, dir string, command ...string) *exec.Cmd {
				return servertest.OnDisk(ctx, t, dir, "4m", command...)
			}, (*shortageTest).fillDisk, 0, 4, "disk is full", http.StatusServiceUnavailable,
		},
		"descriptors": {
			func(ctx context.Context, _ *testing.T, _ string, command ...string) *exec.Cmd {
				return exec.CommandContext(ctx, "sh", append([]string{"-c", `ulimit -n 64 && exec "$0" "$@"`}, command...)...)
			}, (*shortageTest).exhaustDescriptors, 4, max(4, int(*shortage/(30*time.Second))), "too many open files", http.StatusOK,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShortageTest(t, c.work, c.bursts)
			s.cmd = c.start(t.Context(), t, s.dir, binary, "run", "--json", "-c", s.config)
			end := s.run(t)
			ctx, stop := context.WithTimeout(t.Context(), *shortage)
			defer stop()
			var over sync.WaitGroup
			var taking error
			over.Go(func() { taking = c.take(s, ctx) })
			s.post(t)
			over.Wait()
			if taking != nil {
				t.Fatal(taking)
			}
			s.waitUntilSettled(t)
			end()
			s.check(t, c.says, c.code)
		})
	}
}

type shortageTest struct {
	server  *servertest.Server
	store   bucket.Store
	in, out string
	dir     string
	bursts  int
	config  string
	address string
	cmd     *exec.Cmd
	log     bytes.Buffer // of the process, after it has exited

	mu      sync.Mutex
	codes   map[int]int
	slowest time.Duration
}

func newShortageTest(t *testing.T, work, bursts int) *shortageTest {
	t.Helper()
	s := &shortageTest{server: servertest.MinIO(t, servertest.Options{}), dir: t.TempDir(), bursts: bursts, codes: map[int]int{}}
	s.store, s.in, s.out = open(t, s.server), s.server.NewBucket(t), s.server.NewBucket(t)
	var err error
	if s.address, err = servertest.FreeAddress(); err != nil {
		t.Fatal(err)
	}
	s.config = filepath.Join(t.TempDir(), "pawl.yaml")
	text := fmt.Sprintf(shortageConfig, s.dir, s.server.Endpoint, s.server.Region, s.address, s.in, work, s.out)
	if err := os.WriteFile(s.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *shortageTest) run(t *testing.T) (end func()) {
	t.Helper()
	s.cmd.Env = append(os.Environ(), "TMPDIR="+s.dir, "AWS_ACCESS_KEY_ID="+s.server.AccessKey, "AWS_SECRET_ACCESS_KEY="+s.server.SecretKey)
	s.cmd.Stdout, s.cmd.Stderr = io.Discard, &s.log
	servertest.DieWithParent(s.cmd)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.cmd.Wait() }()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		ended <- <-ended
		if t.Failed() {
			t.Logf("log:\n%s", s.log.String())
		}
	})
	s.wait(t, "the process does not listen", func() bool {
		c, err := net.Dial("tcp", s.address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return func() {
		if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		err := <-ended
		ended <- err
		if err != nil {
			t.Errorf("exit: %v", err)
		}
	}
}

func (s *shortageTest) wait(t *testing.T, why string, f func() bool) {
	t.Helper()
	over := time.After(2 * time.Minute)
	for tick := time.NewTicker(50 * time.Millisecond); !f(); {
		select {
		case <-over:
			t.Fatal(why)
		case <-tick.C:
		}
	}
}

// post repeats notifications until they are acknowledged, as stores do.
func (s *shortageTest) post(t *testing.T) {
	t.Helper()
	var senders sync.WaitGroup
	var failed atomic.Pointer[error]
	for i := range s.bursts * burst {
		senders.Go(func() {
			<-time.After(time.Duration(i/burst) * *shortage / time.Duration(s.bursts))
			if err := s.send(t.Context(), i); err != nil {
				failed.Store(&err)
			}
		})
	}
	senders.Wait()
	if err := failed.Load(); err != nil {
		t.Fatal(*err)
	}
}

func (s *shortageTest) send(ctx context.Context, i int) error {
	key := fmt.Sprintf("k%04d", i)
	body := bucket.Object{Body: strings.NewReader(key), Size: int64(len(key))}
	if _, err := s.store.Put(ctx, event.Object{Bucket: s.in, Key: key}, body, bucket.Condition{}); err != nil {
		return err
	}
	payload := fmt.Sprintf(`{"Records":[{"eventVersion":"2.1","eventSource":"aws:s3","awsRegion":"us-east-1","eventTime":%q,"eventName":"ObjectCreated:Put",`+
		`"s3":{"s3SchemaVersion":"1.0","bucket":{"name":%q},"object":{"key":%q,"size":5,"sequencer":"0055AED6DCD902%04X"}}}]}`,
		time.Now().UTC().Format(time.RFC3339), s.in, key, i)
	for ctx.Err() == nil {
		began := time.Now()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.address+"/events", strings.NewReader(payload))
		if err != nil {
			return err
		}
		code := 0
		if resp, err := http.DefaultClient.Do(req); err == nil { // an unanswered one is posted again
			code = resp.StatusCode
			_ = resp.Body.Close()
		}
		s.mu.Lock()
		s.codes[code]++
		s.slowest = max(s.slowest, time.Since(began))
		s.mu.Unlock()
		if code == http.StatusOK {
			return nil
		}
		<-time.After(time.Second)
	}
	return context.Cause(ctx)
}

func (s *shortageTest) fillDisk(ctx context.Context) error {
	return fillDisk(ctx, s.cmd.Process.Pid, s.dir)
}

// fillDisk fills the disk of a process until ctx ends.
func fillDisk(ctx context.Context, pid int, dir string) error {
	name := filepath.Join(fmt.Sprintf("/proc/%d/root", pid), dir, "filler")
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	block := make([]byte, 4096)
	for tick := time.NewTicker(10 * time.Millisecond); ctx.Err() == nil; <-tick.C {
		for err == nil {
			_, err = f.Write(block)
		}
		if !errors.Is(err, syscall.ENOSPC) {
			break
		}
		err = nil
	}
	return errors.Join(err, f.Close(), os.Remove(name))
}

// exhaustDescriptors uses up the webhook's descriptors with idle connections.
func (s *shortageTest) exhaustDescriptors(ctx context.Context) error {
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for ctx.Err() == nil {
				c, err := net.DialTimeout("tcp", s.address, time.Second)
				if err != nil {
					continue
				}
				ended := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
				_, _ = io.Copy(io.Discard, c) // until one side closes it
				ended()
				_ = c.Close()
				<-time.After(100 * time.Millisecond)
			}
		})
	}
	all.Wait()
	return nil
}

func (s *shortageTest) waitUntilSettled(t *testing.T) {
	t.Helper()
	done := 0
	s.wait(t, "some objects are not settled", func() bool {
		for ; done < s.bursts*burst; done++ {
			o := event.Object{Bucket: s.out, Key: fmt.Sprintf("up/k%04d", done)}
			if _, err := s.store.Head(t.Context(), o); err != nil {
				return false
			}
		}
		return true
	})
}

func (s *shortageTest) check(t *testing.T, says string, code int) {
	t.Helper()
	about, dead := 0, 0
	for line := range strings.Lines(s.log.String()) {
		if strings.Contains(line, `"level":"WARN"`) {
			about++
		}
		if strings.Contains(line, `"level":"ERROR"`) {
			dead++
		}
	}
	t.Logf("answers %v, the slowest after %v; %d warnings", s.codes, s.slowest.Round(time.Millisecond), about)
	if !strings.Contains(s.log.String(), says) || s.codes[code] == 0 {
		t.Errorf("no shortage: the log does not contain %q, answers %v", says, s.codes)
	}
	if about >= 30 || dead > 0 {
		t.Errorf("%d warnings and %d errors in the log", about, dead)
	}
	if s.slowest > time.Minute {
		t.Errorf("a post hung for %v", s.slowest)
	}
}
