package logthrottle

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/virtualtime"
)

func TestAllowCountsSuppressed(t *testing.T) {
	var w Warning
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, s := range []struct {
		after      time.Duration
		suppressed int
		ok         bool
	}{
		{0, 0, true},
		{time.Second, 0, false},
		{10*time.Second - 1, 0, false},
		{10 * time.Second, 2, true},
		{30*time.Second - 1, 0, false},
		{30 * time.Second, 1, true},
		{10 * time.Minute, 0, true}, // no warning for a long time
		{10*time.Minute + 9*time.Second, 0, false},
		{10*time.Minute + 10*time.Second, 1, true},
	} {
		if n, ok := w.allow(start.Add(s.after)); n != s.suppressed || ok != s.ok {
			t.Errorf("after %s: %d, %t, want %d, %t", s.after, n, ok, s.suppressed, s.ok)
		}
	}
}

func TestLinesInTenMinutes(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		w := New(slog.New(slog.NewTextHandler(&log, nil)))
		for range 6000 {
			w.Log(t.Context(), "the disk is full", "file", "pawl.db")
			<-time.After(100 * time.Millisecond)
		}
		lines := strings.Count(log.String(), "the disk is full")
		if lines != 8 || !strings.Contains(log.String(), "file=pawl.db more_since_last=99") {
			t.Errorf("%d lines, want 8:\n%s", lines, log.String())
		}
	})
}
