package worker

import (
	"context"
	"fmt"
	"io"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// Handler performs a pipeline's effect for one object; package pawl documents it for
// users.
type Handler interface {
	Handle(ctx context.Context, t *Task) error
}

// HandlerFunc is a function as a Handler.
type HandlerFunc func(ctx context.Context, t *Task) error

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, t *Task) error { return f(ctx, t) }

// Task is one attempt at one object; package pawl documents it for users.
type Task struct {
	Pipeline       string
	Object         event.Object
	Kind           event.Kind
	Info           bucket.Info
	Attempt        int
	Fence          int64
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
// its own, as ledger.Complete does. The pipeline must be declared transactional.
func (t *Task) Completion() (*ledger.Completion, error) { return t.completion() }

// HasOutput reports whether the pipeline has an output, so that Output and
// Publish may be called.
func (t *Task) HasOutput() bool { return t.hasOut }

// Output returns a writer of the output object's content. Calling it again starts
// afresh.
func (t *Task) Output(contentType string) (io.Writer, error) {
	if !t.hasOut {
		return nil, Permanent(fmt.Errorf("pipeline %s has no output to write to: give it one (to)", t.Pipeline))
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
		return Permanent(fmt.Errorf("pipeline %s has no output to write to: give it one (to)", t.Pipeline))
	}
	t.discard()
	t.content = &content{open: open, size: func() int64 { return size }, contentType: contentType}
	return nil
}

// PublishCopy publishes the object itself, with its content type. The store copies it if
// one of methods suits its size. Otherwise the bytes stream through the worker.
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
