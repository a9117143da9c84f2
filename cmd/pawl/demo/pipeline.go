package demo

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/store/sqlite"
)

type pipelineScenario struct {
	*demoRun
	steps  []step
	report *PipelineReport

	store           *store
	endpoint        *endpoint
	ledger          ledger.Store
	inputs, outputs tally
	// announcements receives changes of outputs, and uploads that the pipeline does not match.
	// Changes are dropped while it is full.
	announcements chan change
}

// Run runs the demo of pipelines. It injects faults and kills a worker. It returns [ErrWrong] if a
// check fails.
func Run(ctx context.Context, o Options) error {
	return runScenario(ctx, o, []string{"run"}, func(s *demoRun) scenario {
		s.relay = newRelay(o.Seed, s.token, s.fleet.webhooks)
		p := &pipelineScenario{demoRun: s, steps: plan(o.Seed), report: &PipelineReport{Seed: o.Seed}, announcements: make(chan change, 100)}
		for _, step := range p.steps {
			s.relay.expect(step.key, step.handling)
		}
		return p
	})
}

func (s *pipelineScenario) title() (command, folder string) {
	return fmt.Sprintf("pawl demo --seed %d", s.Seed), "logs, ledger and configuration"
}

func (s *pipelineScenario) result() Report { return s.report }

func (s *pipelineScenario) open(ctx context.Context) (err error) {
	if s.store, err = newStore(s.onChange, inputBucket, outputBucket); err != nil {
		return err
	}
	if s.endpoint, err = s.serve(serve(ctx, s.Listen, s3API(s.store))); err != nil {
		return err
	}
	if err := writeConfig(s.dir, s.endpoint.url); err != nil {
		return err
	}
	s.screen.done("an object store listens on %s, with the buckets %s and %s", s.endpoint.url, inputBucket, outputBucket)
	if err := s.startFirstWorkers(ctx, "share one ledger"); err != nil {
		return err
	}
	records, err := sqlite.Open(ctx, filepath.Join(s.dir, ledgerFile))
	if err != nil {
		return err
	}
	s.ledger = ledger.NewRows(records)
	s.closers = append(s.closers, s.ledger.Close)
	return nil
}

// onChange must not block.
func (s *pipelineScenario) onChange(c change) {
	switch c.bucket {
	case inputBucket:
		s.inputs.add(c)
		s.relay.notify(c)
		if mismatchReason(c.key) != "" {
			s.publish(c)
		}
	case outputBucket:
		s.outputs.add(c)
		s.publish(c)
	}
}

func (s *pipelineScenario) publish(c change) {
	select {
	case s.announcements <- c:
	default:
	}
}
