// Package pawl turns an object store's notifications into effects that happen
// once, in order, one at a time per object.
//
// Give [New] a ledger, an object store, sources of notifications and pipelines;
// [Pawl.Run] does the rest:
//
//	p, err := pawl.New(pawl.Config{
//		Ledger:    records,
//		Objects:   objects,
//		Sources:   []pawl.Source{hook},
//		Pipelines: []pawl.Pipeline{{Name: "load", Match: pawl.Match{Bucket: "exports"}, Handler: load}},
//	})
//
// What is promised depends on the effect; the README says it in a table.
package pawl

import (
	"context"
	"log/slog"
	"time"

	"github.com/pawlhq/pawl/audit"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/worker"
)

// Source brings notifications in.
type Source = source.Source

// Limited is a [Handler] that says how many of its kind may run at a time: one
// that needs much memory, say. A pipeline that states its Concurrency overrules it.
type Limited interface {
	Handler
	Concurrency() int
}

// Replacer is a [Handler] that keeps the content of each object in one place, a database
// table for example, and replaces there what it kept before. The object's name
// identifies what to replace.
type Replacer interface {
	Handler
	// Target returns the place, in words for an error. Pipelines that can match the same
	// object must have different targets, and a pipeline with a target must not set
	// EachVersion.
	Target() string
}

// Causes by which a task is cancelled; see context.Cause.
var (
	ErrLeaseLost = worker.ErrLeaseLost
	ErrShutdown  = worker.ErrShutdown
)

// Permanent marks an error that another attempt at the same content would only
// repeat. The object is dead at once, until it changes or is redriven.
func Permanent(err error) error { return worker.Permanent(err) }

// RetryAfter marks an error that is not worth another attempt before d has
// passed.
func RetryAfter(err error, d time.Duration) error { return worker.RetryAfter(err, d) }

// Outage marks an error that says nothing of the object: this machine, or a service
// that all objects need, is not able to work. The object is tried again with back-off
// until it does, and however long that takes, the attempts are not counted.
func Outage(err error) error { return worker.Outage(err) }

// OutageIfShared marks an error that is an outage of the receiver if that many
// objects of the pipeline meet the same cause without a success between: a refused
// connection, for example. The first of them use up an attempt. Then the pipeline
// backs off, one object at a time probes the receiver, and attempts are not counted
// until Retry.Outage has passed.
func OutageIfShared(err error, cause string, objects int) error {
	return worker.OutageIfShared(err, cause, objects)
}

// Config says what a Pawl works with. Ledger and Pipelines are required; zero
// values elsewhere take the defaults named.
type Config struct {
	Ledger    store.Store
	Objects   bucket.Store // required unless every pipeline goes by event order and has no output
	Sources   []Source
	Pipelines []Pipeline

	Lease Lease
	Retry Retry
	// Concurrency is how many handlers run at a time, of the pipelines that do
	// not state their own; default 16. Half of these slots are shared out among
	// the pipelines, at least one each; who comes first has the other half.
	Concurrency      int
	MaxBacklogEvents int           // events taken in before sources have to wait; default 1000
	MaxBytes         int64         // summed size of the objects being handled; default 1 GiB
	SweepInterval    time.Duration // how often the ledger is asked for due rows; default 1 s
	ShutdownTimeout  time.Duration // how long running handlers may take at shutdown; default 20 s
	Logger           *slog.Logger  // default slog.Default()
	// NoSweep: never ask the ledger for due rows, as fits a program that lives
	// for one batch of messages. It needs AckSettled, because the message is
	// then all that brings the next attempt. Some rows have no message: those
	// to be verified, and those that an operator has redriven. Let another
	// Pawl over the same ledger sweep now and then.
	NoSweep bool
	// SweptElsewhere states that another Pawl over the same ledger sweeps at least every
	// few minutes, so that NoSweep may go with AckStored. See [Pawl.Sweep].
	SweptElsewhere bool
	// Deadline, when set, is when this process is frozen or killed: the deadline of an
	// invocation of AWS Lambda, for example. It must be at least 5 s away. Leases then end
	// at the Deadline and are never renewed. Run starts no handler in the last quarter of
	// the time from New to the Deadline, cancels those that still run 2 s before it (1.25 s, if only 5 s are left), and
	// then returns. A handler that had half of the time and was cancelled used an attempt.
	// ShutdownTimeout is not used.
	Deadline time.Time
	// Memory, when set, passes on what this Pawl learns to the next one of the process.
	Memory *Memory
	// Check, when set, is called once the sources run, those that have a Ready are
	// ready, and before an object is worked on: its error ends Run. A store may wait
	// for a webhook to answer before it is up.
	Check func(ctx context.Context) error
	// Ack says when a message is acknowledged; default [AckStored], or
	// [AckSettled] over a ledger that forgets when its process ends.
	Ack Ack
	// Observer, when set, is told what happens.
	Observer Observer
	// Audit finds what notifications have lost, on a schedule.
	Audit Audit
}

// Audit says when the objects are compared with the ledger, and what is left alone.
type Audit struct {
	// Every: how often Run does it, of all workers over the ledger one at a time.
	// 0: never; [Pawl.Audit] does it once.
	Every time.Duration
	// SettleWindow: what has changed since is left alone, for its notification may be on
	// its way; default 12 h. For pipelines in event order it must exceed MaxDelay, and
	// its default is an hour more than that.
	SettleWindow time.Duration
	// RowRetention: how long the row of a removed object is kept; default 30 days. It
	// must exceed SettleWindow and MaxDelay, or a late event would pass for a new one.
	RowRetention time.Duration
	// MaxDelay: how late a notification may be at most; default 24 h.
	MaxDelay time.Duration
	// PurgeSettled gives up the rows of objects that exist, too, RowRetention after they
	// settled: the ledger stays small, and what is lost about such an object later
	// stays lost. The ledger, which must have registers, remembers how far this has
	// gone: audits pass over objects without a row that are older, for good.
	PurgeSettled bool
}

// What audits and purges are asked, and what they tell.
type (
	// AuditOptions say what one audit is to do.
	AuditOptions = audit.Options
	// AuditReport is what an audit found.
	AuditReport = audit.Report
	// Purged counts what a purge did.
	Purged = audit.Purged
)

// Ack says when a message is acknowledged.
type Ack uint8

// When a message is acknowledged.
const (
	// AckStored: when the ledger has its events. A sweep finds them whatever
	// happens.
	AckStored Ack = iota
	// AckSettled: when every object that it names is settled or dead, or the
	// event stale. A message about an object that backs off, or that another
	// worker holds, is handed back, with the time after which it is worth
	// delivering again.
	AckSettled
)

// Observer is told what happens, for metrics and traces; the log is another
// user.
type Observer = worker.Observer

// Notice states one fact, of those that package engine lists.
type Notice = engine.Notice

// Lease bounds how long one worker may hold an object without a sign of life.
type Lease struct {
	TTL             time.Duration // default 30 s, at least 1 s
	Skew            time.Duration // how far two machines' clocks may differ; default 5 s
	LateWriteWindow time.Duration // how late a write may still land; default 15 min
}

// Retry says how often and how fast a failing object is tried again.
type Retry struct {
	Attempts int           // before the object is dead, outages of the store aside; default 8
	Base     time.Duration // first back-off, doubling; default 1 s
	Max      time.Duration // longest back-off; default 5 min
	// Outage is how long attempts are not counted while the receiver of a pipeline is
	// down. After that, objects can die again, until one succeeds. Default 24 h.
	Outage time.Duration
}

// Pipeline is one effect on a set of objects.
type Pipeline struct {
	Name    string // required: a-z, 0-9, '-', '_', '.'; at most 64 bytes
	Match   Match
	Handler Handler // required
	// To is where the output goes. Nil: the pipeline has none, and the
	// handler sees removals as well.
	To *Output
	// Order says what decides about an object; default [StoreOrder].
	Order Order
	// EachVersion treats every version of an object as a thing of its own:
	// each is handled once, and there is no order across versions.
	EachVersion bool
	// Transactional declares that the handler commits its effect and its task's
	// completion in one transaction of the ledger's database, as by
	// ledger.Complete: then the effect happens exactly once. It has no output.
	Transactional bool
	// Concurrency is how many handlers run at a time in slots that the pipeline
	// has for itself. 0: what a [Limited] handler says, or else it shares those of
	// Config.Concurrency with others.
	Concurrency int
	// EventuallyConsistent declares that the store may hide an object for a while after
	// it was written. "Not found" is then not believed at once.
	EventuallyConsistent bool
}

// Order says what decides about an object.
type Order = worker.Order

// The orders.
const (
	// StoreOrder: an event only says that something changed; what the store
	// holds now decides.
	StoreOrder = worker.StoreOrder
	// EventOrder: the event's trusted sequencer alone decides, and the
	// object is not looked at.
	EventOrder = worker.EventOrder
)

// Match selects objects. An empty field selects all.
type Match struct {
	Bucket string // required
	Prefix string
	Suffix []string // any of them
}

// Output places outputs: the key is Prefix, then the input's key after the
// matched prefix, then Suffix. Different inputs have different outputs.
type Output struct {
	Bucket string
	Prefix string
	Suffix string
}
