package pawl

import (
	"context"
	"io"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/worker"
)

// Handler performs a pipeline's effect for one object. It is never called twice
// at a time for one object, as long as its lease holds: when the lease is lost
// or about to be, ctx is cancelled with [ErrLeaseLost] as its cause, and the
// handler must return.
//
// nil commits the effect. An error is tried again with back-off; wrap it with
// [Permanent] where trying the same content again is useless, with [RetryAfter]
// where the other side said when, with [Outage] where the object is not at fault, or
// with [OutageIfShared] where it is not at fault if other objects fail in the same way.
// A shortage of this machine (of descriptors, processes, memory or disk) anywhere in
// the error is an outage without that.
type Handler interface {
	Handle(ctx context.Context, t *Task) error
}

// HandlerFunc is a function as a Handler.
type HandlerFunc func(ctx context.Context, t *Task) error

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, t *Task) error { return f(ctx, t) }

// Task is one attempt at one object. It is valid until the handler returns.
type Task struct {
	Pipeline string
	Object   event.Object
	// Kind is what the object is now: Created where it exists, Removed where
	// it does not. A pipeline with an output sees Created only: the output
	// of a removed object is removed without asking.
	Kind event.Kind
	// Info is what the store said of the object when the attempt looked. In
	// event order it holds what the event said. Empty for a removal.
	Info bucket.Info
	// Attempt counts from 1.
	Attempt int
	// Fence is the fencing token: larger than that of every earlier attempt
	// at the object. A receiver that refuses smaller ones than it has seen
	// is safe from workers that outlived their lease.
	Fence int64
	// IdempotencyKey is equal for all attempts at this version of the
	// object, and for nothing else. 32 hexadecimal digits.
	IdempotencyKey string

	task *worker.Task // nil in one that a test has made
}

func newTask(t *worker.Task) *Task {
	return &Task{
		Pipeline: t.Pipeline, Object: t.Object, Kind: t.Kind, Info: t.Info,
		Attempt: t.Attempt, Fence: t.Fence, IdempotencyKey: t.IdempotencyKey, task: t,
	}
}

// Completion is for stores that let a handler complete its task in a transaction of
// its own, as ledger.Complete does. The pipeline must be Transactional.
func (t *Task) Completion() (*ledger.Completion, error) { return t.task.Completion() }

// Open reads the object, as it was when the attempt looked at it: if it has
// changed since, Open fails and the attempt starts over. The caller closes it.
func (t *Task) Open(ctx context.Context) (io.ReadCloser, error) { return t.task.Open(ctx) }

// HasOutput reports whether the pipeline has an output, so that Output and
// Publish may be called.
func (t *Task) HasOutput() bool { return t.task != nil && t.task.HasOutput() }

// Output returns a writer of the output object's content. Nothing is visible
// before the handler returns nil; then the content replaces the output, unless
// another attempt came first. A handler that returns nil without calling
// Output or Publish says that this input has no output: an old one is removed.
//
// The content is held in memory while it is small, and in a temporary file
// beyond. Calling Output again starts afresh.
func (t *Task) Output(contentType string) (io.Writer, error) { return t.task.Output(contentType) }

// Publish is Output for content that need not be held: open is called when the
// handler has returned nil, once for each try, and must yield size bytes.
func (t *Task) Publish(contentType string, size int64, open func() (io.ReadCloser, error)) error {
	return t.task.Publish(contentType, size, open)
}

// PublishCopy publishes the object itself, with its content type and none of its metadata.
// The store copies it if one of methods suits its size; the methods must be known to honour
// conditions, as [github.com/pawlhq/pawl/doctor.ProveCopies] finds. Otherwise the bytes
// stream through the worker, and are never held.
func (t *Task) PublishCopy(ctx context.Context, methods bucket.CopyMethod) error {
	return t.task.PublishCopy(ctx, methods)
}
