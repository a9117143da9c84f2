package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlhq/pawl/proof/rig"
)

const stepTimeout = time.Minute

var (
	errTimeout = errors.New("timed out")
	// The demo continues after errUnsettled and reports the current state.
	errUnsettled = errors.New("not all objects are settled")
)

func (s *pipelineScenario) run(ctx context.Context) error {
	begun := time.Now()
	files, err := s.drawPictures(ctx)
	if err != nil {
		return err
	}
	if err := s.upload(ctx, files); err != nil {
		return err
	}
	err = s.awaitSettled(ctx, "all delivered changes are settled")
	if err == nil {
		err = s.heal(ctx)
	}
	if err != nil && !errors.Is(err, errUnsettled) {
		return err
	}
	if err := s.checkOutputs(ctx); err != nil {
		return err
	}
	s.report.Seconds = time.Since(begun).Seconds()
	return nil
}

// awaitSettled waits until the relay and the ledger have no pending work.
func (s *pipelineScenario) awaitSettled(ctx context.Context, line string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, stepTimeout, errTimeout)
	defer cancel()
	most := 0
	err := rig.Until(ctx, 50*time.Millisecond, func() (bool, error) {
		waiting, dead, err := s.unsettled(ctx)
		if len(waiting) > most {
			most = len(waiting)
			s.screen.begin("settling", most)
		}
		s.screen.progress(most - len(waiting))
		s.report.Unsettled = slices.Concat(waiting, dead)
		return len(waiting) == 0, err
	})
	s.screen.end()
	switch {
	case errors.Is(err, errTimeout):
		s.screen.failed("not all objects are settled after %s", stepTimeout)
		return errUnsettled
	case err == nil && len(s.report.Unsettled) > 0:
		s.screen.failed("%s failed", plural(len(s.report.Unsettled), "object"))
	case err == nil:
		s.screen.done("%s", line)
	}
	return err
}

func (s *pipelineScenario) unsettled(ctx context.Context) (waiting, dead []string, err error) {
	// Check the relay first: the ledger then has all delivered notifications.
	open, failure := s.relay.Open()
	rs, err := readRows(ctx, s.ledger)
	if err != nil {
		return nil, nil, err
	}
	waiting, dead = rs.unfinished(time.Now())
	if open > 0 {
		waiting = append(waiting, fmt.Sprintf("%d notifications were not acknowledged; the last error: %v", open, failure))
	}
	return waiting, dead, nil
}

func (s *pipelineScenario) checkOutputs(ctx context.Context) error {
	inputs, err := s.store.contents(inputBucket)
	if err != nil {
		return err
	}
	outputs, err := s.store.contents(outputBucket)
	if err != nil {
		return err
	}
	s.report.Outputs = compare(inputs, outputs)
	if v := &s.report.Outputs; len(v.Wrong) > 0 {
		s.screen.failed("%d of %d outputs are right; %d checks failed", v.Right, v.Of, len(v.Wrong))
	} else {
		s.screen.done("%d of %d outputs are the grayscale of their input, pixel by pixel, and no other output exists", v.Right, v.Of)
	}
	return s.completeReport(ctx)
}

func (s *pipelineScenario) completeReport(ctx context.Context) error {
	rs, err := readRows(ctx, s.ledger)
	if err != nil {
		return err
	}
	again, err := s.audit(ctx, "--dry-run")
	if err != nil {
		return err
	}
	r := s.report
	for _, e := range again.Examples {
		r.Unsettled = append(r.Unsettled, e.Object+": "+e.What+", after the audit that repaired all objects")
	}
	r.Notifications = s.relay.Messages()
	r.Effects.Duplicates, r.Effects.Stale = s.relay.rejected()
	r.Effects.Committed, r.Effects.TakenOver = s.outputs.count(), rs.takenOver()
	r.Workers.Started = s.fleet.size()
	r.OK = len(r.Outputs.Wrong) == 0 && len(r.Unsettled) == 0
	return nil
}
