// Package logthrottle logs warnings that come again and again: a full disk, or a
// sender that is refused, would otherwise fill the log with one line.
package logthrottle

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// A kind of warning is silent for a pause after it was logged. Each pause is twice
// as long as the one before, between these two.
const (
	minPause = 10 * time.Second
	maxPause = 2 * time.Minute
)

// Warning is one kind of warning. The first is logged at once, and the next ones
// after growing pauses, with the number of those that were kept back: 8 lines in
// ten minutes. When none came for two minutes after a pause, it begins anew. A
// Warning is safe for concurrent use.
type Warning struct {
	logger *slog.Logger

	mu         sync.Mutex
	pause      time.Duration
	until      time.Time
	suppressed int
}

// New returns a kind of warning that has not been logged.
func New(l *slog.Logger) *Warning { return &Warning{logger: l} }

// Log logs the warning, unless it is to be silent.
func (w *Warning) Log(ctx context.Context, msg string, args ...any) {
	suppressed, ok := w.allow(time.Now())
	if !ok {
		return
	}
	if suppressed > 0 {
		args = append(args, "more_since_last", suppressed)
	}
	w.logger.WarnContext(ctx, msg, args...)
}

// allow reports whether to log now, and how many warnings were suppressed since the
// last one.
func (w *Warning) allow(now time.Time) (suppressed int, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Before(w.until) {
		w.suppressed++
		return 0, false
	}
	if now.Sub(w.until) > maxPause {
		w.pause = 0
	}
	w.pause = min(max(2*w.pause, minPause), maxPause)
	w.until = now.Add(w.pause)
	suppressed, w.suppressed = w.suppressed, 0
	return suppressed, true
}
