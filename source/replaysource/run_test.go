package replaysource_test

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/source/replaysource"
	"github.com/pawlhq/pawl/source/sourcetest"
)

var quiet = slog.New(slog.DiscardHandler)

type recordingSink struct{ events []event.Event }

func (k *recordingSink) Deliver(_ context.Context, d source.Delivery) error { return k.TryDeliver(d) }

func (k *recordingSink) TryDeliver(d source.Delivery) error {
	k.events = append(k.events, d.Events...)
	d.Done(source.Outcome{Ack: true, Verdicts: source.Verdicts{Raised: len(d.Events)}})
	return nil
}

func (k *recordingSink) keys() []string {
	keys := make([]string, len(k.events))
	for i, e := range k.events {
		keys[i] = e.Object.Key
	}
	return keys
}

func newSource(t testing.TB, cfg replaysource.Config) *replaysource.Source {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = quiet
	}
	if cfg.Paths == nil {
		cfg.Paths = []string{"-"}
	}
	s, err := replaysource.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func replay(t *testing.T, cfg replaysource.Config, input string) (*recordingSink, replaysource.Progress, error) {
	t.Helper()
	cfg.Stdin = strings.NewReader(input)
	s, sink := newSource(t, cfg), &recordingSink{}
	err := s.Run(t.Context(), sink)
	return sink, s.Progress(), err
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return r, w
}

func file(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "events.ndjson")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func running(t *testing.T, s *replaysource.Source, sink source.Sink, payloads int) *sourcetest.Running {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	acknowledged := make(chan struct{})
	var run sync.WaitGroup
	run.Go(func() {
		ended <- s.Run(ctx, sink)
		if s.Progress().Acknowledged == int64(payloads) {
			close(acknowledged)
		}
	})
	t.Cleanup(func() { cancel(); run.Wait() })
	return &sourcetest.Running{Source: s, Cancel: cancel, Ended: ended, Acknowledged: acknowledged}
}

func TestRulesFromFile(t *testing.T) {
	sourcetest.Test(t, func(t *testing.T, sink source.Sink, grace time.Duration, payloads []string) *sourcetest.Running {
		name := file(t, strings.Join(payloads, "\n"))
		return running(t, newSource(t, replaysource.Config{Paths: []string{name}, ShutdownTimeout: grace}), sink, len(payloads))
	})
}

func TestRulesFromPipe(t *testing.T) {
	sourcetest.Test(t, func(t *testing.T, sink source.Sink, grace time.Duration, payloads []string) *sourcetest.Running {
		r, w := pipe(t)
		if _, err := io.WriteString(w, strings.Join(payloads, "\n")); err != nil { // fits into the buffer of a pipe
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return running(t, newSource(t, replaysource.Config{Paths: []string{"-"}, Stdin: r, ShutdownTimeout: grace}), sink, len(payloads))
	})
}

func TestSilentInput(t *testing.T) {
	interruptible, _ := pipe(t)
	stubborn, other := io.Pipe()
	t.Cleanup(func() { _ = other.Close() })
	for name, stdin := range map[string]io.Reader{"interruptible": interruptible, "stubborn": stubborn} {
		t.Run(name, func(t *testing.T) {
			reading := &signal{Reader: stdin, reading: make(chan struct{})}
			if f, ok := stdin.(*os.File); ok {
				reading.deadline = f.SetReadDeadline
			}
			s := newSource(t, replaysource.Config{Stdin: reading})
			run := running(t, s, &recordingSink{}, 1)
			sourcetest.Wait(t, reading.reading, "the first read")
			run.Cancel()
			if err := sourcetest.Wait(t, run.Ended, "the end of Run"); err != nil {
				t.Error(err)
			}
			if s.Progress().Complete {
				t.Error("an interrupted replay says that it is complete")
			}
		})
	}
}

type signal struct {
	io.Reader
	once     sync.Once
	reading  chan struct{}
	deadline func(time.Time) error
}

func (s *signal) Read(p []byte) (int, error) {
	s.once.Do(func() { close(s.reading) })
	return s.Reader.Read(p)
}

func (s *signal) SetReadDeadline(at time.Time) error {
	if s.deadline == nil {
		return os.ErrNoDeadline
	}
	return s.deadline(at)
}
