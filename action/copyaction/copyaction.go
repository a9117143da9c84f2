// Package copyaction copies objects to another bucket or prefix.
package copyaction

import (
	"context"
	"sync/atomic"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/doctor"
)

// Config is empty, because the pipeline's output is the destination of the copy.
type Config struct{}

// Handler copies objects with their content type, but without metadata and tags. Pawl sets the
// metadata of outputs.
//
// The bytes stream through the worker, so large objects need no memory. Each object is one upload,
// so its size must not exceed the store's limit for a single PUT, which is 5 GiB on S3. After
// [Handler.Prove], the store copies the objects itself if it supports that.
type Handler struct {
	methods atomic.Uint32 // the bucket.CopyMethod that Prove has enabled
}

// New returns a handler.
func New(Config) (*Handler, error) { return &Handler{}, nil }

// Prove tests whether the store honours conditions on copies to a pipeline's output, and enables
// the copy methods whose conditions it honours. It writes small objects below to.Prefix and removes
// them. If Prove returns an error, objects stream through the worker.
func (h *Handler) Prove(ctx context.Context, store bucket.Store, to pawl.Output) (bucket.CopyMethod, error) {
	methods, err := doctor.ProveCopies(ctx, store, to.Bucket, to.Prefix)
	if err != nil {
		return 0, err
	}
	h.methods.Store(uint32(methods))
	return methods, nil
}

// Handle implements [pawl.Handler].
func (h *Handler) Handle(ctx context.Context, t *pawl.Task) error {
	return t.PublishCopy(ctx, bucket.CopyMethod(h.methods.Load()))
}
