package engine

import (
	"time"

	"github.com/pawlhq/pawl/ledger"
)

// Notice states a fact, for logs, metrics and traces. Nothing depends on it.
type Notice struct {
	Kind Kind
	// Key names the object. Facts about deliveries and batches have none.
	Key ledger.RowKey
	// N is how many rows a RowsWritten or RowsRefused is about, how many events an
	// Unmatched, how many losses an Audited; else 0.
	N int
	// Took is how long that took which the fact ends.
	Took time.Duration
	// Detail says more, for people.
	Detail string
}

// Kind is what a Notice states.
type Kind uint8

// The facts that a log should not lack.
const (
	Died             Kind = iota + 1 // a row is dead: an operator must look. It may be reported twice
	TookOver                         // a claim found another worker's lease expired
	LostLease                        // an attempt ended without its lease. Took: the attempt
	AttemptFailed                    // an attempt failed, and will be made again. Took: the attempt
	AttemptUncounted                 // an attempt failed for no fault of its object, and is not counted. Took: the attempt
	ShapeChanged                     // a sequencer is written differently than before
	Committed                        // an effect was committed. Took: the attempt
	NothingToDo                      // an attempt found the effect committed already. Took: the attempt
	Unreadable                       // a row cannot be read: its object waits
	Disordered                       // an event was passed over as stale, though its own time is newer
	ReceiverDown                     // an outage of a pipeline's receiver began. It has no object
	ReceiverUp                       // it ended with a success. Took: the outage
)

// The facts that only metrics want; see [Config.Counts].
const (
	Raised           Kind = ReceiverUp + 1 + iota // an event is news
	Duplicate                                     // an event was heard before
	Stale                                         // an event is older than what was heard before
	Unmatched                                     // no pipeline wants these events
	Acknowledged                                  // a delivery is done with. Took: since it came
	Returned                                      // a delivery must come again. Took: since it came
	Claimed                                       // an attempt begins. Took: since the object needed one, as far as known here
	AttemptReleased                               // an attempt ended with its worker's shutdown. Took: the attempt
	RowsWritten                                   // a batch of rows was sent to the ledger. Took: until its answer
	RowsRefused                                   // these rows of it another worker had changed
	LossFound                                     // an audit found a loss; Detail names it
	LossRepaired                                  // and had the object looked at again
	Audited                                       // an audit of this process ended. N: the losses. Took: the audit
	LastAudit                                     // the last one over this ledger, by whomever, ended so long ago. Took: how long
	RemovalsWithheld                              // an audit withheld removals in a pipeline, because they were too many. N: how many. It has no object
)

// verdictKinds are the facts of the verdicts.
var verdictKinds = [...]Kind{ledger.Raised: Raised, ledger.Duplicate: Duplicate, ledger.Stale: Stale}

// count reports a fact that only metrics want.
func (e *Engine) emitMetric(r Notice) {
	if e.cfg.Counts {
		e.emit(r)
	}
}

// emitAnswered reports the answer to a delivery.
func (e *Engine) emitAnswered(d *delivery) {
	r := Notice{Kind: Acknowledged, Took: e.now.Sub(d.came)}
	if !d.answer.Ack {
		r.Kind, r.Detail = Returned, d.answer.Err.Error()
	}
	e.emitMetric(r)
}

// wrote reports a batch that the ledger has answered.
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
