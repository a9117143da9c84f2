package awslambda

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

const (
	// sweepRegister plus a pipeline's name is the name of the register with the time of the
	// pipeline's last sweep.
	sweepRegister = "lambda/swept/"
	// sweepAge is the age of the last sweep after which sweeps count as missing.
	sweepAge = 5 * time.Minute
	// sweepCheck is the interval between two reads of the last sweep's time.
	sweepCheck = time.Minute
)

// recorder records the time of a sweep for each pipeline: as soon as the ledger has returned its
// due rows, and then every minute, because a long sweep reads no due rows while it is busy.
type recorder struct {
	*Handler
	wake chan struct{} // signals a new pipeline

	mu   sync.Mutex
	read map[string]bool // pipelines whose due rows the ledger has returned; true if recorded
}

// note is called after the ledger has returned the due rows of a pipeline.
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

// run records pipelines until done is closed.
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

// recordNew records the pipelines in read that are not recorded yet.
func (r *recorder) recordNew(ctx context.Context) {
	for _, pipeline := range r.pipelines(false) {
		r.record(ctx, pipeline)
		r.mu.Lock()
		r.read[pipeline] = true
		r.mu.Unlock()
	}
}

// pipelines returns the pipelines in read that are recorded, or those that are not.
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

// record writes the current time to the register of a pipeline. If that fails for five minutes,
// invocations acknowledge messages only when their objects are settled.
func (r *recorder) record(ctx context.Context, pipeline string) {
	name, now := sweepRegister+pipeline, time.Now().UTC().Format(time.RFC3339)
	was, err := r.rows.ReadRegister(ctx, name)
	if err == nil {
		_, err = r.rows.WriteRegister(ctx, name, was.Version, []byte(now))
	}
	if err != nil && !errors.Is(err, ledger.ErrRegisterChanged) { // another sweep has just recorded its time
		r.Config.Logger.Warn("the time of this sweep was not recorded", "pipeline", pipeline, "error", err)
	}
}

// missing returns an error if the ledger has not returned the due rows of a pipeline.
func (r *recorder) missing() error {
	for i := range r.Config.Pipelines {
		if name := r.Config.Pipelines[i].Name; !r.read[name] {
			return fmt.Errorf("awslambda: the sweep got no due rows of pipeline %s from the ledger: the log has the reason", event.Quote(name))
		}
	}
	return nil
}

// sweepsRun reports whether every pipeline was swept in the last five minutes. It reads the
// ledger at most once a minute.
func (h *Handler) sweepsRun(ctx context.Context) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.checked.Round(0)) < sweepCheck { // the wall clock, because the monotonic clock may stop while the process is frozen
		return h.swept
	}
	h.swept, h.checked = true, time.Now()
	for i := range h.Config.Pipelines {
		name := h.Config.Pipelines[i].Name
		switch at, err := h.lastSweep(ctx, name); {
		case err != nil:
			h.swept = false
			h.Config.Logger.Warn("the time of the last sweep cannot be read: messages are acknowledged only when their objects are settled", "pipeline", name, "error", err)
		case time.Since(at) > sweepAge:
			h.swept = false
			h.Config.Logger.Error(`no sweep has run for five minutes: messages are acknowledged only when their objects are settled; invoke the function every minute with {"pawl":"sweep"}`,
				"pipeline", name, "last_sweep", at)
		}
	}
	return h.swept
}

// lastSweep returns the time of a pipeline's last sweep, or zero if there was none.
func (h *Handler) lastSweep(ctx context.Context, pipeline string) (at time.Time, err error) {
	r, err := h.rows.ReadRegister(ctx, sweepRegister+pipeline)
	if err != nil || r.Version == "" {
		return at, err
	}
	return time.Parse(time.RFC3339, string(r.Value))
}
