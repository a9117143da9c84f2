package engine

import (
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// Input is one of the types below.
type Input interface{ input() }

// Deliver is a message. The engine answers each delivery with one Answer.
type Deliver struct {
	ID    uint64 // unique among open deliveries
	Items []Item
}

// Item is one event for one pipeline.
type Item struct {
	Key     ledger.RowKey
	Event   event.Event
	Trusted bool // the sequencer alone may decide the order
	// Traceparent is the trace context of the delivery, or "". Start returns it.
	Traceparent string
}

// Swapped answers a Swap, with one Outcome for each change. After an error other than
// [ledger.ErrRejected], a change has an unknown result, because the worker is being stopped or its
// ledger is unusable.
type Swapped struct {
	Batch    uint64
	Outcomes []ledger.Outcome
}

// Finished is the result of an attempt.
type Finished struct {
	Key    ledger.RowKey
	Fence  int64
	Result Result
	Acted  bool // the effect was needed, if Result is Completed
	Ending ledger.Ending
	// Transactional: the handler commits its effect and the row in one transaction.
	Transactional bool
	// Row is the row after the handler's transaction, if it was loaded.
	Row     *ledger.Row
	Failure ledger.Failure
	Shared  Shared
}

// Result is the outcome of a task.
type Result uint8

// Results of a task.
const (
	Completed Result = iota + 1
	Failed
	Released // cancelled by a shutdown
)

// Swept answers a Sweep with due rows, or none if the query failed.
type Swept struct {
	Pipeline string
	Rows     []ledger.Row
	Failed   bool
}

// Loaded answers a Load with the current rows of its keys. A missing row was purged; a failed load
// has no keys.
type Loaded struct {
	Keys []ledger.RowKey
	Rows []ledger.Row
}

// Tick reports that time has passed.
type Tick struct{}

// SourcesEnded reports that no delivery follows. The engine then loads the rows of unsettled
// objects, until [Engine.AllSettled].
type SourcesEnded struct{}

// SweepOnce makes the engine sweep each pipeline until one query returns all of its due rows. No
// delivery follows.
type SweepOnce struct{}

// Drain stops new claims, so that running attempts can end.
type Drain struct{}

func (Deliver) input()      {}
func (Swapped) input()      {}
func (Finished) input()     {}
func (Swept) input()        {}
func (Loaded) input()       {}
func (Tick) input()         {}
func (SourcesEnded) input() {}
func (SweepOnce) input()    {}
func (Drain) input()        {}

// Action is one of the types below.
type Action interface{ action() }

// Swap requests a commit of changes, each to a different row. Answer it with Swapped.
type Swap struct {
	Batch   uint64
	Changes []ledger.Change
}

// Start requests an attempt. Always answer it with Finished. Cancel the task's context by Deadline,
// because another worker may hold the lease afterwards.
type Start struct {
	Claim    ledger.Claim
	Deadline time.Time
	Asked    time.Time // when the claim was sent
	// Deliveries has the trace contexts of deliveries about the object since its last attempt.
	Deliveries []string
}

// Extend moves a running task's deadline after its lease was renewed.
type Extend struct {
	Key      ledger.RowKey
	Fence    int64
	Deadline time.Time
}

// Cancel requests the end of a task that has lost its lease.
type Cancel struct {
	Key   ledger.RowKey
	Fence int64
}

// Answer answers a delivery.
type Answer struct {
	ID  uint64
	Ack bool
	// After delays the redelivery, if Ack is false.
	After                    time.Duration
	Raised, Duplicate, Stale int
	Err                      error
}

// Sweep requests the due rows of a pipeline. Answer it with Swept.
type Sweep struct {
	Pipeline string
	Before   time.Time
	Limit    int
}

// Load requests the rows of these keys. Answer it with Loaded.
type Load struct{ Keys []ledger.RowKey }

func (Swap) action()   {}
func (Start) action()  {}
func (Extend) action() {}
func (Cancel) action() {}
func (Answer) action() {}
func (Sweep) action()  {}
func (Load) action()   {}
func (Notice) action() {}
