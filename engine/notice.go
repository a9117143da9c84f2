package engine

import (
	"time"

	"github.com/pawlhq/pawl/ledger"
)

// Notice reports an event inside a worker or an audit, for logs, metrics and traces.
type Notice struct {
	Kind Kind
	// Key names the object. It is empty in notices about deliveries and batches, and has
	// only a pipeline in notices about a pipeline.
	Key ledger.RowKey
	// N is the number of rows (RowsWritten, RowsRefused), events (Unmatched), losses
	// (Audited) or removals (RemovalsWithheld), otherwise 0.
	N int
	// Took is the duration of the operation that this notice ends.
	Took time.Duration
	// Detail has more information for people.
	Detail string
}

// Kind is the kind of a Notice.
type Kind uint8

// Kinds of notices that a worker logs.
const (
	Died             Kind = iota + 1 // a row is dead and needs an operator. May be reported twice
	TookOver                         // a claim took over an expired lease
	LostLease                        // an attempt ended without its lease. Took: duration of the attempt
	AttemptFailed                    // an attempt failed, and will be retried. Took: duration of the attempt
	AttemptUncounted                 // an attempt failed because of an outage, and is not counted. Took: duration of the attempt
	ShapeChanged                     // a sequencer has another format than the one before
	Committed                        // an effect was committed. Took: duration of the attempt
	NothingToDo                      // an attempt found its effect already committed. Took: duration of the attempt
	Unreadable                       // a row cannot be read, so its object waits
	Disordered                       // an event was ignored as stale, although its time is newer
	ReceiverDown                     // an outage of a pipeline's receiver began. Key: the pipeline
	ReceiverUp                       // the outage ended with a success. Key: the pipeline. Took: duration of the outage
)

// Kinds of notices that only metrics need; see [Config.Counts].
const (
	Raised           Kind = ReceiverUp + 1 + iota // an event raised Want
	Duplicate                                     // an event was seen before
	Stale                                         // an event is older than Want
	Unmatched                                     // events match no pipeline
	Acknowledged                                  // a delivery was acknowledged. Took: time since its arrival
	Returned                                      // a delivery was returned to its source. Took: time since its arrival
	Claimed                                       // an attempt begins. Took: time since the object needed one, if known
	AttemptReleased                               // an attempt was released at shutdown. Took: duration of the attempt
	RowsWritten                                   // the ledger answered a swap. Took: duration of the request
	RowsRefused                                   // rows of that swap were refused
	LossFound                                     // an audit found a loss. Detail: its kind
	LossRepaired                                  // the audit repaired the loss
	Audited                                       // an audit of this process ended. N: its losses. Took: duration of the audit
	LastAudit                                     // age of the last audit by any process. Took: that age
	RemovalsWithheld                              // an audit withheld removals because there were too many. Key: the pipeline. N: the removals
)

var verdictKinds = [...]Kind{ledger.Raised: Raised, ledger.Duplicate: Duplicate, ledger.Stale: Stale}

// emitMetric emits a notice that only metrics need.
func (e *Engine) emitMetric(r Notice) {
	if e.cfg.Counts {
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
	e.emit(Notice{Kind: RowsWritten, N: len(batch), Took: e.now.Sub(batch[0].pending.at)})
	refused := 0
	for i := range in.Outcomes {
		if o := &in.Outcomes[i]; !o.Applied && o.Err == nil {
			refused++
		}
	}
	if refused > 0 {
		e.emit(Notice{Kind: RowsRefused, N: refused})
	}
}
