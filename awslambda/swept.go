package awslambda

import (
	"context"
	"errors"
	"time"

	"github.com/pawlhq/pawl/internal/process"
	"github.com/pawlhq/pawl/ledger"
)

const (
	// sweepRegister and a pipeline's name make the name of the register that holds the
	// time of the pipeline's last sweep.
	sweepRegister = "lambda/swept/"
	// sweepAge is the age of the last sweep from which sweeps count as missing.
	sweepAge = 5 * time.Minute
	// sweepCheck is how long one process relies on what it read.
	sweepCheck = time.Minute
)

// keepRecording records every minute that a sweep runs, until ctx ends. wait is the time
// until the first record.
func (h *Handler) keepRecording(ctx context.Context, wait time.Duration) {
	for process.Sleep(ctx, wait) == nil {
		wait = h.recordSweep(ctx)
	}
}

// recordSweep records that a sweep runs now, and returns the time until the next record: a
// minute, or a second if it failed. If no sweep is recorded for a while, invocations only
// acknowledge messages later.
func (h *Handler) recordSweep(ctx context.Context) time.Duration {
	if err := h.writeRegisters(ctx); err != nil {
		if ctx.Err() == nil {
			h.Config.Logger.Warn("the time of this sweep was not recorded; trying again", "error", err)
		}
		return time.Second
	}
	return time.Minute
}

// writeRegisters writes the current time to the register of each pipeline.
func (h *Handler) writeRegisters(ctx context.Context) error {
	now := []byte(time.Now().UTC().Format(time.RFC3339))
	for i := range h.Config.Pipelines {
		name := sweepRegister + h.Config.Pipelines[i].Name
		r, err := h.rows.ReadRegister(ctx, name)
		if err == nil {
			_, err = h.rows.WriteRegister(ctx, name, r.Version, now)
		}
		if err != nil && !errors.Is(err, ledger.ErrRegisterChanged) { // another sweep has just recorded its time
			return err
		}
	}
	return nil
}

// sweepsRun reports whether each pipeline was swept in the last five minutes. It asks the
// ledger once a minute.
func (h *Handler) sweepsRun(ctx context.Context) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.checked.Round(0)) < sweepCheck { // by the wall clock, which counts while the process is frozen
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
