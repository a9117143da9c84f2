package worker

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/ledger"
)

// Causes of cancelled ledger calls.
var (
	errLedgerTimeout  = errors.New("the ledger did not answer in time during shutdown: the leases will expire")
	errHandlerTimeout = errors.New("handlers did not return in time during shutdown: their leases will expire")
)

// shutdown cancels tasks after the shutdown timeout, and ledger calls after the ledger timeout. If
// the ledger becomes unusable, everything ends at once.
type shutdown struct {
	w           *Worker
	begin       <-chan struct{}
	graceOver   <-chan time.Time
	callTimeout <-chan time.Time
	callsOver   <-chan struct{}
	begun       bool
}

func (s *shutdown) drain() engine.Input {
	s.begin, s.begun = nil, true
	s.w.admission.close()
	s.graceOver = time.After(s.w.cfg.ShutdownTimeout)
	if n := len(s.w.tasks); n > 0 {
		s.w.cfg.Logger.Info("waiting for running handlers to return", "running", n, "grace", s.w.cfg.ShutdownTimeout.String())
	}
	return engine.Drain{}
}

func (s *shutdown) cancelTasks() {
	s.graceOver = nil
	s.w.endTasks(ErrShutdown)
	s.callTimeout = time.After(s.w.cfg.LedgerTimeout)
}

// Only the end of the process can stop the handlers that still run.
func (s *shutdown) cancelCalls() {
	s.callTimeout = nil
	unresponsive := slices.SortedFunc(maps.Keys(s.w.tasks), ledger.RowKey.Compare)
	for _, key := range unresponsive {
		s.w.cfg.Logger.Warn("shutdown waits for a handler that ignores its cancelled context",
			"pipeline", key.Pipeline, "object", key.Object().String())
	}
	if len(unresponsive) > 0 {
		s.w.endCalls(errHandlerTimeout)
	}
	s.w.endCalls(errLedgerTimeout)
}

func (s *shutdown) forceEnd() (inputs []engine.Input) {
	s.callsOver = nil
	if !s.begun {
		inputs = append(inputs, s.drain())
	}
	s.graceOver = nil
	if s.w.base.Err() == nil {
		s.cancelTasks()
	}
	return inputs
}
