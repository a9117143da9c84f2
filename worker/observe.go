package worker

import (
	"context"
	"log/slog"
	"time"

	"github.com/pawlhq/pawl/engine"
)

// Observer receives notices from the worker's main loop, so it must not block or call the worker.
// Workers that share an Observer may call it concurrently.
type Observer interface {
	Observe(r engine.Notice)
}

type observers []Observer

func (o observers) Observe(r engine.Notice) {
	for _, each := range o {
		each.Observe(r)
	}
}

type logObserver struct {
	*slog.Logger
	warnings *warnings
}

var logLines = map[engine.Kind]struct {
	level   slog.Level
	message string
}{
	engine.Died:             {slog.LevelError, "dead: no more attempts until the object changes or an operator redrives it"},
	engine.TookOver:         {slog.LevelWarn, "took over an expired lease"},
	engine.LostLease:        {slog.LevelWarn, "attempt lost its lease"},
	engine.AttemptFailed:    {slog.LevelWarn, "attempt failed; it will be retried"},
	engine.AttemptUncounted: {slog.LevelWarn, "attempt failed because of an outage; it will be retried, and is not counted"},
	engine.ReceiverDown:     {slog.LevelWarn, "the receiver is down: the pipeline backs off, one object at a time probes the receiver, and attempts are not counted until retry.outage has passed"},
	engine.ReceiverUp:       {slog.LevelInfo, "the receiver works again"},
	engine.ShapeChanged:     {slog.LevelWarn, "the sequencer's format changed: the order of events is doubtful"},
	engine.Disordered:       {slog.LevelWarn, "ignored an event as stale, although its time is newer: if changes of the object have no effect, run pawl redrive --reset-order"},
	engine.Committed:        {slog.LevelInfo, "committed"},
	engine.NothingToDo:      {slog.LevelDebug, "nothing to do"},
	engine.Unreadable:       {slog.LevelWarn, "the object's row in the ledger is unreadable: Pawl skips the object; pawl ls --state unreadable lists such rows"},
}

func (l logObserver) Observe(r engine.Notice) {
	line, ok := logLines[r.Kind]
	ctx := context.Background()
	if !ok || !l.Enabled(ctx, line.level) {
		return
	}
	attrs := []any{"pipeline", r.Key.Pipeline}
	if r.Key.Key != "" {
		attrs = append(attrs, "object", r.Key.Object().String())
	}
	if r.Detail != "" {
		attrs = append(attrs, "detail", r.Detail)
	}
	if r.Took > 0 {
		attrs = append(attrs, "took", r.Took.Round(time.Millisecond).String())
	}
	if r.TraceID != "" {
		attrs = append(attrs, "trace_id", r.TraceID)
	}
	if w := l.warnings.notices[r.Kind][r.Key.Pipeline]; w != nil {
		w.Log(ctx, line.message, attrs...)
		return
	}
	l.Log(ctx, line.level, line.message, attrs...)
}
