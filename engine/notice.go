package engine

import (
	"time"

	"github.com/pawlhq/pawl/ledger"
)

// Notice reports an event inside a worker or an audit, for logs, metrics and traces.
type Notice struct {
	Kind Kind
	// Key is empty in notices about deliveries and batches, and has only a pipeline in those about
	// a pipeline.
	Key ledger.RowKey
	// N is a number of rows, events, losses or removals.
	N    int
	Took time.Duration
	// Behind is the time from the object's newest event until its effect was committed. It is set in
	// Committed if no newer event waits.
	Behind time.Duration
	// Detail is for people.
	Detail string
	// TraceID is that of the attempt, if the worker has a tracer.
	TraceID string
}

// Kind is the kind of a Notice.
type Kind uint8

// Kinds of notices that a worker logs. Took is the duration of the attempt.
const (
	Died             Kind = iota + 1 // a row is dead and needs an operator; may be reported twice
	TookOver                         // a claim took over an expired lease
	LostLease                        // the attempt ended without its lease
	AttemptFailed                    // an attempt failed, and will be retried
	AttemptUncounted                 // an attempt failed because of an outage
	ShapeChanged                     // a sequencer has another format than the one before
	Committed
	NothingToDo // the effect was already committed
	Unreadable
	Disordered   // an event was ignored as stale, although its time is newer
	ReceiverDown // an outage of a pipeline's receiver began
	ReceiverUp   // the outage ended. Took: its duration
)

// Kinds of notices that only metrics need; see [Config.Counts].
const (
	Raised           Kind = ReceiverUp + 1 + iota // an event raised Want
	Duplicate                                     // an event was seen before
	Stale                                         // an event is older than Want
	Unmatched                                     // events match no pipeline
	Acknowledged                                  // Took: time since the delivery's arrival
	Returned                                      // to the source. Took: time since the delivery's arrival
	Claimed                                       // Took: time since the object needed an attempt, if known
	AttemptReleased                               // Took: duration of the attempt
	AttemptAbandoned                              // its result could not be stored
	RowsWritten                                   // Took: duration of the request
	RowsRefused                                   // rows of that swap were refused
	LossFound                                     // an audit found a loss. Detail: its kind
	LossRepaired
	Audited          // an audit of this process ended. N: its losses. Took: its duration
	LastAudit        // Took: age of the last audit by any process. N: 1 if the next one is due
	RemovalsWithheld // too many removals. N: their number
	AuditRunning     // N: 1 if an audit of this process begins or resumes, 0 if it ends or stops
	AuditFailed      // an audit of this process ended with an error
)

var verdictKinds = [...]Kind{ledger.Raised: Raised, ledger.Duplicate: Duplicate, ledger.Stale: Stale}

func (e *Engine) emitMetric(r Notice) {
	if e.cfg.Counts {
		e.emit(r)
	}
}

func (e *Engine) emitEnd(r Notice) {
	if e.cfg.Counts || e.cfg.Traces {
		e.emit(r)
	}
}

func (e *Engine) emitAnswered(d *delivery) {
	r := Notice{Kind: Acknowledged, Took: e.now.Sub(d.came)}
	if !d.answer.Ack {
		r.Kind, r.Detail = Returned, d.answer.Err.Error()
	}
	e.emitMetric(r)
}

func (e *Engine) emitWritten(batch []*entry, in *Swapped) {
	if !e.cfg.Counts || len(batch) == 0 {
		return
	}
	written, refused := 0, 0
	for i := range in.Outcomes {
		switch o := &in.Outcomes[i]; {
		case o.Applied:
			written++
		case o.Err == nil:
			refused++
		}
	}
	e.emit(Notice{Kind: RowsWritten, N: written, Took: e.now.Sub(batch[0].pending.at)})
	if refused > 0 {
		e.emit(Notice{Kind: RowsRefused, N: refused})
	}
}
