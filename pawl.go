// Package pawl turns an object store's notifications into effects that happen once, in
// order, and one at a time per object.
//
// # Run a pipeline
//
// Give [New] a ledger, an object store, sources of notifications, and pipelines. [Pawl.Run] processes them
// until its context ends, or until the sources have ended and every object is settled. This pipeline keeps
// a copy of each note in capital letters:
//
//	p, err := pawl.New(pawl.Config{
//		Ledger:  records,             // for example from store/sqlite
//		Objects: objects,             // for example from bucket/s3bucket
//		Sources: []pawl.Source{hook}, // for example from source/webhooksource
//		Pipelines: []pawl.Pipeline{{
//			Name:    "shout",
//			Match:   pawl.Match{Bucket: "notes", Suffix: []string{".txt"}},
//			Handler: pawl.HandlerFunc(shout),
//			To:      &pawl.Output{Bucket: "shouted"},
//		}},
//	})
//	…
//	err = p.Run(ctx)
//
// # Write a handler
//
// A [Handler] performs the effect for one version of one object. Its [Task] reads the object and writes the
// output:
//
//	func shout(ctx context.Context, t *pawl.Task) error {
//		note, err := t.Open(ctx)
//		if err != nil {
//			return err
//		}
//		defer note.Close()
//		text, err := io.ReadAll(note)
//		if err != nil {
//			return err
//		}
//		out, err := t.Output("text/plain")
//		if err != nil {
//			return err
//		}
//		_, err = out.Write(bytes.ToUpper(text))
//		return err
//	}
//
// Packages below action have handlers for common effects. When a note is removed, Pawl removes its output
// without calling the handler. A pipeline without an output receives the removals.
//
// # Errors of a handler
//
// Pawl repeats a failed attempt with back-off, up to Retry.Attempts. [Permanent] marks an error that every
// attempt would return, [RetryAfter] delays the next attempt, and [Outage] marks an error that does not
// depend on the object.
//
// # Guarantees
//
// The guarantees depend on the kind of effect:
//   - An output that the handler writes through Pawl converges to the result of the current input. An
//     older result replaces a newer one only in rare cases, which Pawl repairs.
//   - An effect in the ledger's own database happens exactly once if the pipeline is Transactional and the
//     handler calls ledger.Complete.
//   - Other effects happen in order, and again after an attempt of unknown result. The receiver can reject
//     repeats by Task.IdempotencyKey, and expired lease holders by Task.Fence.
//
// # Lost notifications
//
// A lost notification has no effect until an audit. [Pawl.Audit] compares the bucket with the ledger once,
// and Config.Audit schedules audits.
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

// Source delivers notifications.
type Source = source.Source

// Limited is a [Handler] with its own limit of concurrent calls. A pipeline's Concurrency overrides it.
type Limited interface {
	Handler
	Concurrency() int
}

// Replacer is a [Handler] that stores the content of each object in one target, for example a database
// table. It replaces what it stored there before under the object's name.
type Replacer interface {
	Handler
	// Target describes the target for errors. Pipelines that can match the same object must have different
	// targets, and a pipeline with a target must not set EachVersion.
	Target() string
}

// Causes of a task's cancellation; see context.Cause.
var (
	ErrLeaseLost = worker.ErrLeaseLost
	ErrShutdown  = worker.ErrShutdown
)

// Permanent marks an error that every attempt at the same content would return. The object is dead until it
// changes or an operator redrives it.
func Permanent(err error) error { return worker.Permanent(err) }

// RetryAfter marks an error that must not be retried before d has passed.
func RetryAfter(err error, d time.Duration) error { return worker.RetryAfter(err, d) }

// Outage marks an error that does not depend on the object. Pawl retries with back-off until success, and
// does not count the attempts.
func Outage(err error) error { return worker.Outage(err) }

// OutageIfShared marks an error that may be an outage of the receiver, for example a refused connection. It
// is an outage when the given number of objects have failed with the same cause, without a success in
// between. The attempts that failed before that count. During the outage, one object at a time probes the
// receiver, and attempts do not count until Retry.Outage has passed.
func OutageIfShared(err error, cause string, objects int) error {
	return worker.OutageIfShared(err, cause, objects)
}

// Config configures a Pawl. Ledger and Pipelines are required.
type Config struct {
	Ledger    store.Store
	Objects   bucket.Store // required unless every pipeline is in event order without output
	Sources   []Source
	Pipelines []Pipeline

	Lease Lease
	Retry Retry
	// Concurrency is the number of concurrent handlers of all pipelines without their own Concurrency;
	// default 16. Half of these slots are guaranteed to the pipelines in equal parts, at least one to each.
	Concurrency      int
	MaxBacklogEvents int           // unfinished events; default 1000
	MaxBytes         int64         // of the objects in progress; default 1 GiB
	SweepInterval    time.Duration // of the query for due rows; default 1 s
	ShutdownTimeout  time.Duration // for running handlers to finish; default 20 s
	Logger           *slog.Logger  // default slog.Default()
	// NoSweep disables the query for due rows, for a program that processes one batch of messages. It
	// requires AckSettled, because only a redelivered message then starts the next attempt. Another Pawl
	// with the same ledger must sweep regularly: verifications and redriven rows have no message.
	NoSweep bool
	// SweptElsewhere declares that another Pawl with the same ledger sweeps at least every few minutes. It
	// permits NoSweep with AckStored. See [Pawl.Sweep].
	SweptElsewhere bool
	// Deadline is the time at which the process is frozen or killed, for example that of an AWS Lambda
	// invocation. It must be at least 5 s away. Leases end at the Deadline and are never renewed. Run
	// starts no handler in the last quarter of the time from New to the Deadline. It cancels running
	// handlers 2 s before the Deadline, or 1.25 s if only 5 s are left. A cancelled handler uses up an
	// attempt if it has had half of the time. ShutdownTimeout is ignored. Zero: no deadline.
	Deadline time.Time
	// Memory, if set, passes knowledge to the next Pawl of the process.
	Memory *Memory
	// Check, if set, is called after every source with a Ready method is ready, and before any object is
	// processed. If Check fails, Run returns its error. The sources start first, because some stores start
	// only after a webhook answers.
	Check func(ctx context.Context) error
	// Ack defaults to [AckStored]. With a volatile ledger it is always [AckSettled].
	Ack Ack
	// Observer, if set, receives notices of all activity.
	Observer Observer
	// Tracer, if set, records deliveries and attempts; see package metrics/otel.
	Tracer Tracer
	// Audit schedules audits, which find lost notifications.
	Audit Audit
}

// Audit configures audits and purges.
type Audit struct {
	// Every is the interval of audits during Run; 0 means none. Workers of one ledger run one audit at a
	// time.
	Every time.Duration
	// SettleWindow is the time for which an audit ignores a change, because its notification may still
	// arrive; default 12 h. With a pipeline in event order it must exceed MaxDelay, and its default is
	// MaxDelay plus 1 h.
	SettleWindow time.Duration
	// RowRetention is the retention time for rows of removed objects; default 30 days. It must exceed
	// SettleWindow and MaxDelay, because a late event of a purged row looks new.
	RowRetention time.Duration
	// MaxDelay is the maximum delay of a notification; default 24 h.
	MaxDelay time.Duration
	// PurgeSettled also purges rows of existing objects, RowRetention after they settled. Audits then
	// ignore existing objects that have no row and are older than the purge, so they miss later losses
	// about these objects. The ledger must have registers.
	PurgeSettled bool
}

// Types of package audit.
type (
	// AuditOptions configures one audit.
	AuditOptions = audit.Options
	// AuditReport is the result of an audit.
	AuditReport = audit.Report
	// Purged counts the rows that a purge deleted.
	Purged = audit.Purged
)

// Ack determines when a message is acknowledged.
type Ack uint8

// Acknowledgement modes.
const (
	// AckStored acknowledges a message when its events are in the ledger. A sweep processes them even after
	// a crash.
	AckStored Ack = iota
	// AckSettled acknowledges a message when every object in it is settled or dead, or its event is stale.
	// Other messages are returned with the delay after which a redelivery is useful.
	AckSettled
)

// Observer receives notices, for metrics and traces.
type Observer = worker.Observer

// Tracer records deliveries and attempts as spans.
type Tracer = worker.Tracer

// Notice reports one event; package engine lists the kinds.
type Notice = engine.Notice

// Lease configures leases and the permitted clock difference.
type Lease struct {
	TTL             time.Duration // without a renewal; default 30 s, at least 1 s
	Skew            time.Duration // clock difference between machines; default 5 s
	LateWriteWindow time.Duration // maximum delay of a write after its attempt; default 15 min
}

// Retry configures retries of failed attempts.
type Retry struct {
	Attempts int           // until an object is dead, without those in an outage; default 8
	Base     time.Duration // first back-off; it doubles each time; default 1 s
	Max      time.Duration // longest back-off; default 5 min
	// Outage is the time for which attempts do not count in a receiver's outage; default 24 h. After
	// that, failures count again until an object succeeds.
	Outage time.Duration
}

// Pipeline is one effect on a set of objects.
type Pipeline struct {
	Name    string // required: a-z, 0-9, '-', '_', '.'; at most 64 bytes
	Match   Match
	Handler Handler // required
	// To is the location of outputs. If it is nil, the pipeline has no output, and the handler also gets
	// removals.
	To *Output
	// Order defaults to [StoreOrder].
	Order Order
	// EachVersion makes Pawl process each version of an object once, in any order.
	EachVersion bool
	// Transactional declares that the handler commits its effect and its task's completion in one
	// transaction of the ledger's database, with ledger.Complete. The effect then happens exactly once.
	// Such a pipeline has no output.
	Transactional bool
	// Concurrency is the number of concurrent handlers in slots of this pipeline alone. If it is 0, the
	// limit of a [Limited] handler applies, or else the slots of Config.Concurrency.
	Concurrency int
	// EventuallyConsistent declares that the store may hide a new object for a while. Pawl rechecks "not
	// found" before it treats the object as removed.
	EventuallyConsistent bool
}

// Order determines whether the object in the store or the event decides.
type Order = worker.Order

// Orders.
const (
	// StoreOrder: Pawl reads the object in the store to learn its current version.
	StoreOrder = worker.StoreOrder
	// EventOrder: the event's trusted sequencer decides, and the object is not read.
	EventOrder = worker.EventOrder
)

// Match selects objects. An empty Prefix or Suffix matches all.
type Match struct {
	Bucket string // required
	Prefix string
	Suffix []string // one of them
}

// Output determines the keys of outputs: Prefix, then the input's key without the matched prefix, then
// Suffix.
type Output struct {
	Bucket string
	Prefix string
	Suffix string
}
