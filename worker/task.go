package worker

import (
	"context"
	"fmt"
	"io"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
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

	open       func(ctx context.Context) (io.ReadCloser, error)
	completion func() (*ledger.Completion, error)

	hasOut  bool
	spool   *spool
	content *content
}

// content is what a task will publish. open may be called more than once.
type content struct {
	open        func() (io.ReadCloser, error)
	size        func() int64
	contentType string
	copies      bucket.CopyMethod // how the store may copy the object itself; 0: content is none of it
}

// Open reads the object, as it was when the attempt looked at it: if it has
// changed since, Open fails and the attempt starts over. The caller closes it.
func (t *Task) Open(ctx context.Context) (io.ReadCloser, error) {
	if t.Kind != event.Created {
		return nil, Permanent(fmt.Errorf("open %s: the object was removed", t.Object))
	}
	return t.open(ctx)
}

// Completion is for stores that let a handler complete its task in a transaction of
// its own, as ledger.Complete does. The pipeline must be Transactional.
func (t *Task) Completion() (*ledger.Completion, error) { return t.completion() }

// HasOutput reports whether the pipeline has an output, so that Output and
// Publish may be called.
func (t *Task) HasOutput() bool { return t.hasOut }

// Output returns a writer of the output object's content. Nothing is visible
// before the handler returns nil; then the content replaces the output, unless
// another attempt came first. A handler that returns nil without calling
// Output or Publish says that this input has no output: an old one is removed.
//
// The content is held in memory while it is small, and in a temporary file
// beyond. Calling Output again starts afresh.
func (t *Task) Output(contentType string) (io.Writer, error) {
	if !t.hasOut {
		return nil, Permanent(fmt.Errorf("pipeline %s has no output: configure one (to)", t.Pipeline))
	}
	t.discard()
	t.spool = &spool{}
	t.content = &content{open: t.spool.open, size: t.spool.len, contentType: contentType}
	return t.spool, nil
}

// Publish is Output for content that need not be held: open is called when the
// handler has returned nil, once for each try, and must yield size bytes.
func (t *Task) Publish(contentType string, size int64, open func() (io.ReadCloser, error)) error {
	if !t.hasOut {
		return Permanent(fmt.Errorf("pipeline %s has no output: configure one (to)", t.Pipeline))
	}
	t.discard()
	t.content = &content{open: open, size: func() int64 { return size }, contentType: contentType}
	return nil
}

// PublishCopy publishes the object itself, with its content type and none of its metadata.
// The store copies it if one of methods suits its size; the methods must be known to honour
// conditions, as [github.com/pawlhq/pawl/doctor.ProveCopies] finds. Otherwise the bytes
// stream through the worker, and are never held.
func (t *Task) PublishCopy(ctx context.Context, methods bucket.CopyMethod) error {
	open := func() (io.ReadCloser, error) { return t.Open(ctx) }
	if err := t.Publish(t.Info.ContentType, t.Info.Size, open); err != nil {
		return err
	}
	t.content.copies = methods
	return nil
}

// discard drops what the handler has written so far.
func (t *Task) discard() {
	if t.spool != nil {
		t.spool.close()
	}
	t.spool, t.content = nil, nil
}
