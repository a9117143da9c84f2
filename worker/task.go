package worker

import (
	"context"
	"fmt"
	"io"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// Handler performs a pipeline's effect for one object. No other handler runs for the object while
// the lease is held. When the lease is lost, ctx is cancelled with the cause [ErrLeaseLost], and
// the handler must return.
//
// If Handle returns nil, the worker commits the effect. After an error, the worker retries the
// object with back-off: see [Permanent], [RetryAfter], [Outage] and [OutageIfShared]. A shortage of
// this machine (descriptors, processes, memory or disk space) is an outage without a mark.
type Handler interface {
	Handle(ctx context.Context, t *Task) error
}

// HandlerFunc is a function that implements Handler.
type HandlerFunc func(ctx context.Context, t *Task) error

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, t *Task) error { return f(ctx, t) }

// Task is one attempt at one object. It is valid until the handler returns.
type Task struct {
	Pipeline string
	Object   event.Object
	// Kind is Removed if the object does not exist. If the pipeline has an output, Pawl handles
	// removals itself.
	Kind event.Kind
	// Info is the metadata that the attempt read, or the event's data in event order.
	Info bucket.Info
	// Attempt counts from 1.
	Attempt int
	// Fence is the fencing token. A receiver that rejects smaller tokens is safe from workers that
	// outlived their lease.
	Fence int64
	// IdempotencyKey has 32 hexadecimal digits. It is equal for all attempts at this version of the
	// object, and different for all others.
	IdempotencyKey string
	// Traceparent is the W3C trace context of the handler's span. Empty: no tracer.
	Traceparent string

	open       func(ctx context.Context) (io.ReadCloser, error)
	completion func() (*ledger.Completion, error)

	hasOut  bool
	spool   *spool
	content *content
}

// open may be called repeatedly.
type content struct {
	open        func() (io.ReadCloser, error)
	size        func() int64
	contentType string
	copies      bucket.CopyMethod // permitted methods; 0: not the object itself
}

// Open reads the content that the attempt saw, or fails if it has changed. Then the attempt starts
// over. The caller closes the reader.
func (t *Task) Open(ctx context.Context) (io.ReadCloser, error) {
	if t.Kind != event.Created {
		return nil, Permanent(fmt.Errorf("open %s: the object was removed", t.Object))
	}
	return t.open(ctx)
}

// Completion is for ledger.Complete, in a Transactional pipeline.
func (t *Task) Completion() (*ledger.Completion, error) { return t.completion() }

// HasOutput reports whether the pipeline has an output.
func (t *Task) HasOutput() bool { return t.hasOut }

// Output returns a writer for the output object, which is written after the handler has returned
// nil. Without a call of Output or Publish, the existing output is removed.
//
// Large content is buffered in a temporary file. Another call discards the previous content.
func (t *Task) Output(contentType string) (io.Writer, error) {
	if !t.hasOut {
		return nil, Permanent(fmt.Errorf("pipeline %s has no output: configure one (to)", t.Pipeline))
	}
	t.discard()
	t.spool = &spool{}
	t.content = &content{open: t.spool.open, size: t.spool.len, contentType: contentType}
	return t.spool, nil
}

// Publish sets the output's content without a buffer. open is called once per try after the handler
// has returned nil. Its reader must yield size bytes.
func (t *Task) Publish(contentType string, size int64, open func() (io.ReadCloser, error)) error {
	if !t.hasOut {
		return Permanent(fmt.Errorf("pipeline %s has no output: configure one (to)", t.Pipeline))
	}
	t.discard()
	t.content = &content{open: open, size: func() int64 { return size }, contentType: contentType}
	return nil
}

// PublishCopy publishes the object itself, without its metadata. The store copies it if one of
// methods permits the object's size; otherwise the bytes stream through the worker. The methods
// must be known to honour conditions: see [github.com/pawlhq/pawl/doctor.ProveCopies].
func (t *Task) PublishCopy(ctx context.Context, methods bucket.CopyMethod) error {
	open := func() (io.ReadCloser, error) { return t.Open(ctx) }
	if err := t.Publish(t.Info.ContentType, t.Info.Size, open); err != nil {
		return err
	}
	t.content.copies = methods
	return nil
}

func (t *Task) discard() {
	if t.spool != nil {
		t.spool.close()
	}
	t.spool, t.content = nil, nil
}
