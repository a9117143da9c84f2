package worker

import (
	"time"

	"github.com/pawlhq/pawl/engine"
)

// patience is how long a shutdown waits for the ledger and for handlers after
// the grace.
const patience = 10 * time.Second

// shutdown leads the loop through an orderly end: drain, cancel the tasks that
// outlast the grace, and at last the calls that outlast patience. Calls that end
// before their time, as the ledger is unusable, end everything else.
type shutdown struct {
	w            *Worker
	begin        <-chan struct{}
	graceOver    <-chan time.Time
	patienceOver <-chan time.Time
	callsOver    <-chan struct{}
	begun        bool
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
	s.w.endCalls(errStuck)
}

// giveUp goes through all that is left of a shutdown at once.
func (s *shutdown) giveUp() (inputs []engine.Input) {
	s.callsOver = nil
	if !s.begun {
		inputs = append(inputs, s.drain())
	}
	s.w.endTasks(ErrShutdown)
	s.graceOver, s.patienceOver = nil, nil
	return inputs
}

func (s *shutdown) end() { s.w.gate.close() }
