// Package copyaction copies objects to another bucket or prefix.
package copyaction

import (
	"context"
	"sync/atomic"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/doctor"
)

// Config is empty, because the pipeline's output is the destination.
type Config struct{}

// Handler copies objects with their content type, but without metadata and tags. The bytes stream
// through the worker as one upload, so the store's limit for a PUT applies, 5 GiB on S3. After
// [Handler.Prove], the store copies objects itself if it can.
type Handler struct {
	methods atomic.Uint32 // a bucket.CopyMethod, set by Prove
}

// New returns a handler.
func New(Config) (*Handler, error) { return &Handler{}, nil }

// Prove enables the copy methods whose conditions the store honours for a pipeline's output. It
// writes small objects below to.Prefix and removes them. If it fails, objects stream through the
// worker.
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
