package worker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/worker"
)

type recorder struct {
	mu    sync.Mutex
	lines []string
}

func (t *recorder) note(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, fmt.Sprintf(format, args...))
}

func (t *recorder) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = nil
}

func (t *recorder) count(line string) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.lines {
		if strings.HasPrefix(l, line) {
			n++
		}
	}
	return n
}

// want ignores indentation.
func (t *recorder) want(tb testing.TB, text string) {
	tb.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	if d := cmp.Diff(lines, t.lines); d != "" {
		tb.Errorf("the recording differs (-want +got):\n%s", d)
	}
}

func (t *recorder) handler(h worker.HandlerFunc) worker.HandlerFunc {
	return func(ctx context.Context, task *worker.Task) error {
		t.note("handle %s %s", task.Kind, task.Object.Key)
		return h(ctx, task)
	}
}

type recorded struct {
	bucket.Store
	recorder *recorder
}

func (s recorded) Head(ctx context.Context, ref event.Object) (bucket.Info, error) {
	info, err := s.Store.Head(ctx, ref)
	s.recorder.note("head %s/%s: %s", ref.Bucket, ref.Key, said(err))
	return info, err
}

func (s recorded) Get(ctx context.Context, ref event.Object) (bucket.Info, io.ReadCloser, error) {
	info, body, err := s.Store.Get(ctx, ref)
	s.recorder.note("get %s/%s: %s", ref.Bucket, ref.Key, said(err))
	return info, body, err
}

func (s recorded) Put(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
	etag, err := s.Store.Put(ctx, ref, o, c)
	s.recorder.note("put %s/%s %s: %s", ref.Bucket, ref.Key, recoverPanic(c), said(err))
	return etag, err
}

func (s recorded) Delete(ctx context.Context, ref event.Object, c bucket.Condition) error {
	err := s.Store.Delete(ctx, ref, c)
	s.recorder.note("delete %s/%s %s: %s", ref.Bucket, ref.Key, recoverPanic(c), said(err))
	return err
}

func recoverPanic(c bucket.Condition) string {
	switch {
	case c.IfAbsent:
		return "if absent"
	case c.IfMatch != "":
		return "if unchanged"
	}
	return "in any case"
}

func said(err error) string {
	if err == nil {
		return "ok"
	}
	for _, kind := range []error{
		bucket.ErrNotFound, bucket.ErrNoBucket, bucket.ErrDenied, bucket.ErrInvalid,
		bucket.ErrPrecondition, bucket.ErrConflict, bucket.ErrUnclear, bucket.ErrUnavailable,
	} {
		if errors.Is(err, kind) {
			return kind.Error()
		}
	}
	return err.Error()
}

type logbook struct {
	mu    sync.Mutex
	lines []string
}

func (l *logbook) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

func (l *logbook) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString(r.Level.String() + " " + r.Message)
	r.Attrs(func(a slog.Attr) bool {
		b.WriteString(" " + a.String())
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, b.String())
	return nil
}

func (l *logbook) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l *logbook) WithGroup(string) slog.Handler      { return l }

func (l *logbook) having(texts ...string) (lines []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
next:
	for _, line := range l.lines {
		for _, s := range texts {
			if !strings.Contains(line, s) {
				continue next
			}
		}
		lines = append(lines, line)
	}
	return lines
}
