package demo

import (
	"context"
	"errors"
	"time"

	"github.com/pawlhq/pawl/proof/rig"
)

// killWorker kills a worker while it processes objects, as kill -9 does. Then it starts another
// worker.
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

// freezeWithLeases freezes the worker at a moment when it has leases, so that it cannot release
// them. It returns the number of leases. If the worker never has a lease, freezeWithLeases does
// not freeze it.
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
