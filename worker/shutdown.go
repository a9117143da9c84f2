package worker

import (
	"time"

	"github.com/pawlhq/pawl/engine"
)

// patience is how long a shutdown waits for the ledger and for handlers after
// the grace.
const patience = 10 * time.Second

// shutdown leads the loop through an orderly end: drain, cancel the tasks that
// outlast the grace, and at last the calls that outlast patience.
type shutdown struct {
	w            *Worker
	begin        <-chan struct{}
	graceOver    <-chan time.Time
	patienceOver <-chan time.Time
	begun        bool
	err          error
}

func (s *shutdown) drain() engine.Input {
	s.begin, s.begun = nil, true
	s.w.gate.close()
	s.graceOver = time.After(s.w.cfg.Grace)
	return engine.Drain{}
}

func (s *shutdown) cancelTasks() {
	s.graceOver = nil
	s.w.endTasks(ErrShutdown)
	s.patienceOver = time.After(patience)
}

func (s *shutdown) cancelCalls() {
	s.patienceOver = nil
	s.err = errStuck
	s.w.endCalls(errStuck)
}

func (s *shutdown) end() { s.w.gate.close() }
