package engine

import (
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// Input is something that happened: one of the types below.
type Input interface{ input() }

// Deliver brings a message in. Every delivery is answered by one Answer.
type Deliver struct {
	ID    uint64 // unique while the delivery is open
	Items []Item
}

// Item is one event for one pipeline.
type Item struct {
	Key     ledger.RowKey
	Event   event.Event
	Trusted bool // its sequencer may decide alone
}

// Swapped answers a Swap, one Outcome for each change. Where an Outcome has an
// error nothing is known of that change, and nothing will be: the worker is
// being stopped hard, or its ledger is unusable and it is about to be.
type Swapped struct {
	Batch    uint64
	Outcomes []ledger.Outcome
}

// Finished says how the task of an attempt ended.
type Finished struct {
	Key    ledger.RowKey
	Fence  int64
	Result Result
	Acted  bool // Completed: there was something to do
	Ending ledger.Ending
	// Transactional: the handler commits its effect and the row in one
	// transaction. Whether it did, the row tells, whatever the handler says.
	Transactional bool
	// Row is the row that it has left, if that was looked at.
	Row *ledger.Row
	// Failure says why, for Failed.
	Failure ledger.Failure
	// Shared, for Failed, relates the failure to those of other objects.
	Shared Shared
}

// Result is how a task ended.
type Result uint8

// The results.
const (
	Completed Result = iota + 1
	Failed
	Released // given back at shutdown
)

// Swept answers a Sweep with due rows. A failed sweep is answered without any.
type Swept struct {
	Pipeline string
	Rows     []ledger.Row
	Failed   bool
}

// Loaded answers a Load with the rows of its keys as they stand, none for a key
// that has no row. A failed look is answered without keys.
type Loaded struct {
	Keys []ledger.RowKey
	Rows []ledger.Row
}

// Tick says that time has passed.
type Tick struct{}

// SourcesEnded says that no delivery will follow. From then on the engine loads for
// what has become of the objects that its deliveries named, until
// [Engine.AllSettled].
type SourcesEnded struct{}

// SweepOnce asks to sweep each pipeline until one answer holds every row that is due.
// No delivery follows. [Engine.AllSettled] reports when all of those rows were processed.
type SweepOnce struct{}

// Drain asks to take nothing new, so that what runs can end.
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

// Action is something to do: one of the types below.
type Action interface{ action() }

// Swap asks to commit changes, each of another row. Answer with Swapped.
type Swap struct {
	Batch   uint64
	Changes []ledger.Change
}

// Start asks to run an attempt, whose claim is committed. Answer with Finished,
// whatever happens. From Deadline on, by the worker's own clock, the lease may
// be another's: the task's context must be cancelled by then.
type Start struct {
	Claim    ledger.Claim
	Deadline time.Time
}

// Extend moves a running task's deadline: its lease was renewed.
type Extend struct {
	Key      ledger.RowKey
	Fence    int64
	Deadline time.Time
}

// Cancel asks to end a running task: its lease is another's.
type Cancel struct {
	Key   ledger.RowKey
	Fence int64
}

// Answer answers a delivery.
type Answer struct {
	ID  uint64
	Ack bool
	// After is when a delivery that is not acknowledged is worth another
	// try.
	After                    time.Duration
	Raised, Duplicate, Stale int
	Err                      error
}

// Sweep asks for the rows of a pipeline that are due. Answer with Swept.
type Sweep struct {
	Pipeline string
	Before   time.Time
	Limit    int
}

// Load asks for the rows of these keys. Answer with Loaded.
type Load struct{ Keys []ledger.RowKey }

func (Swap) action()   {}
func (Start) action()  {}
func (Extend) action() {}
func (Cancel) action() {}
func (Answer) action() {}
func (Sweep) action()  {}
func (Load) action()   {}
func (Notice) action() {}
