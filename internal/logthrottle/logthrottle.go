// Package logthrottle throttles repeated warnings, for example about a full disk or a rejected
// sender, so that they do not fill the log.
package logthrottle

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Bounds of the pause after a logged warning. Each pause is twice as long as the pause before
// it.
const (
	minPause = 10 * time.Second
	maxPause = 2 * time.Minute
)

// Warning is one kind of warning. It logs the first warning immediately. It logs later warnings
// after growing pauses, together with the number of suppressed warnings. This makes 8 lines in
// ten minutes. If no warning occurs for two minutes after a pause, the pauses start again. A
// Warning is safe for concurrent use.
type Warning struct {
	logger *slog.Logger

	mu         sync.Mutex
	pause      time.Duration
	until      time.Time
	suppressed int
}

// New returns a Warning that logs to l.
func New(l *slog.Logger) *Warning { return &Warning{logger: l} }

// Log logs the warning, unless it is suppressed.
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

// allow reports whether to log now. It also returns the number of warnings that were suppressed
// since the last logged one.
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
