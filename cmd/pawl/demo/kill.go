package demo

import (
	"context"
	"errors"
	"time"

	"github.com/pawlhq/pawl/proof/rig"
)

func (s *pipelineScenario) killWorker(ctx context.Context) error {
	err := rig.Until(ctx, 10*time.Millisecond, func() (bool, error) { return 5*s.inputs.count().sum() > 2*len(s.steps), nil })
	if err != nil {
		return err
	}
	held, err := s.freezeWithLeases(ctx, s.killed)
	if err != nil {
		return err
	}
	s.killed.Kill()
	s.report.Workers.Killed, s.report.Workers.Held = 1, held
	s.screen.done("%s is killed while it processes %s", s.killed, plural(held, "photograph"))
	return s.startReplacement(ctx)
}

// freezeWithLeases freezes the worker while it has leases, so that it cannot release them. It
// returns their number. If the worker never has a lease, it is not frozen.
func (s *pipelineScenario) freezeWithLeases(ctx context.Context, w *worker) (held int, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 10*time.Second, errTimeout)
	defer cancel()
	count := func() int {
		rs, rerr := readRows(ctx, s.ledger)
		err = errors.Join(err, rerr)
		return rs.held(w.Pid)
	}
	waited := rig.Until(ctx, 5*time.Millisecond, func() (bool, error) {
		if held = count(); held == 0 || err != nil {
			return false, err
		}
		if err := w.Freeze(); err != nil {
			return false, err
		}
		if held = count(); held == 0 {
			return false, w.Thaw()
		}
		return true, err
	})
	if errors.Is(waited, errTimeout) {
		return 0, nil
	}
	return held, waited
}
