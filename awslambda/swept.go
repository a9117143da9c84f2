package awslambda

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/format"
	"github.com/pawlhq/pawl/ledger"
)

const (
	// sweepRegister is followed by a pipeline's name.
	sweepRegister = "lambda/swept/"
	// Sweeps count as missing after sweepAge.
	sweepAge = 5 * time.Minute
	// The last sweep's time is read at most once per sweepCheck.
	sweepCheck = time.Minute
)

// recorder records the time of a sweep for each pipeline. It repeats that every minute, because a long
// sweep reads no due rows while it is busy.
type recorder struct {
	*Handler
	wake chan struct{}

	mu   sync.Mutex
	read map[string]bool // by pipelines whose due rows the ledger has returned; true if recorded
}

func (r *recorder) note(pipeline string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.read[pipeline]; known {
		return
	}
	r.read[pipeline] = false
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *recorder) run(ctx context.Context, done <-chan struct{}) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-r.wake:
			r.recordNew(ctx)
		case <-tick.C:
			for _, pipeline := range r.pipelines(true) {
				r.record(ctx, pipeline)
			}
		case <-done:
			r.recordNew(ctx)
			return
		}
	}
}

func (r *recorder) recordNew(ctx context.Context) {
	for _, pipeline := range r.pipelines(false) {
		r.record(ctx, pipeline)
		r.mu.Lock()
		r.read[pipeline] = true
		r.mu.Unlock()
	}
}

func (r *recorder) pipelines(recorded bool) (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, is := range r.read {
		if is == recorded {
			names = append(names, name)
		}
	}
	return names
}

// If the register cannot be written for five minutes, invocations acknowledge messages only when their
// objects are settled.
func (r *recorder) record(ctx context.Context, pipeline string) {
	s, was, err := r.readSweep(ctx, pipeline)
	if err == nil {
		s.At = time.Now().UTC().Truncate(time.Second)
		was.Value, err = format.Encode(&s)
	}
	if err == nil {
		_, err = r.rows.WriteRegister(ctx, was.Name, was.Version, was.Value)
	}
	if err != nil && !errors.Is(err, ledger.ErrRegisterChanged) { // another sweep was faster
		r.Config.Logger.Warn("the time of this sweep was not recorded", "pipeline", pipeline, "error", err)
	}
}

func (r *recorder) missing() error {
	for i := range r.Config.Pipelines {
		if name := r.Config.Pipelines[i].Name; !r.read[name] {
			return fmt.Errorf("awslambda: the sweep got no due rows of pipeline %s from the ledger: the log has the reason", event.Quote(name))
		}
	}
	return nil
}

// sweepsRun reads the ledger at most once a minute.
func (h *Handler) sweepsRun(ctx context.Context) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.checked.Round(0)) < sweepCheck { // wall clock: the monotonic clock may stop while the process is frozen
		return h.swept
	}
	h.swept, h.checked = true, time.Now()
	for i := range h.Config.Pipelines {
		name := h.Config.Pipelines[i].Name
		switch s, _, err := h.readSweep(ctx, name); {
		case err != nil:
			h.swept = false
			h.Config.Logger.Warn("the time of the last sweep cannot be read: messages are acknowledged only when their objects are settled", "pipeline", name, "error", err)
		case time.Since(s.At) > sweepAge:
			h.swept = false
			h.Config.Logger.Error(`no sweep has run for five minutes: messages are acknowledged only when their objects are settled; invoke the function every minute with {"pawl":"sweep"}`,
				"pipeline", name, "last_sweep", s.At)
		}
	}
	return h.swept
}

type sweep struct {
	format.Header
	At time.Time `json:"at"` // zero: never
}

func (h *Handler) readSweep(ctx context.Context, pipeline string) (s sweep, r ledger.Register, err error) {
	if r, err = h.rows.ReadRegister(ctx, sweepRegister+pipeline); err == nil {
		err = format.Decode(r.Value, &s)
	}
	return s, r, err
}
