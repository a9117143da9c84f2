package pawl

import "time"

// Health is the state of a Pawl that liveness and readiness probes check.
type Health struct {
	// LastTurn is the time at which the worker last processed its inputs. It advances at least every
	// five seconds during Run, even if the ledger does not answer. Zero: Run has not begun.
	LastTurn time.Time
	// LastAnswer is the time at which the ledger last answered a request without an error.
	LastAnswer time.Time
	// Unanswered is the time of the first request to the ledger since its last answer. Zero: no request
	// waits.
	Unanswered time.Time
	// Listening reports whether every source that listens on an address does so.
	Listening bool
	// ShuttingDown reports whether Run accepts no further work.
	ShuttingDown bool
}

// Health returns the current health. It sends no request.
func (p *Pawl) Health() Health {
	w := p.worker.Health()
	h := Health{LastTurn: w.LastTurn, LastAnswer: w.LastAnswer, Unanswered: w.Unanswered, Listening: true, ShuttingDown: p.ending.Load()}
	for _, ready := range p.listeners() {
		select {
		case <-ready:
		default:
			h.Listening = false
		}
	}
	return h
}
