// Package logthrottle throttles repeated warnings, so that they do not fill the log.
package logthrottle

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Each pause is twice as long as the one before.
const (
	minPause = 10 * time.Second
	maxPause = 2 * time.Minute
)

// Warning is one kind of warning. It logs the first one immediately, and later ones after growing pauses
// with the number of suppressed warnings: 8 lines in ten minutes. After two quiet minutes, the pauses start
// again. It is safe for concurrent use.
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
