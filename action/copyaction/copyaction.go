// Package copyaction copies objects to another bucket or prefix.
package copyaction

import (
	"context"
	"sync/atomic"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/doctor"
)

// Config has nothing to choose: where the copy goes is the pipeline's output.
type Config struct{}

// Handler copies objects. Its output is the object itself, with its content type. The
// object's metadata and tags are not copied: an output's metadata is Pawl's own.
//
// The bytes stream from the one place to the other and are never held, so the size of an
// object costs no memory. One upload carries them, so the store's limit for a single PUT
// holds: 5 GiB on S3. After [Handler.Prove], the store copies the objects if it can.
type Handler struct {
	methods atomic.Uint32 // a bucket.CopyMethod
}

// New returns a handler.
func New(Config) (*Handler, error) { return &Handler{}, nil }

// Prove examines whether the store honours conditions on copies to a pipeline's output, and
// lets it copy in the ways that do. It writes small objects below to.Prefix and removes
// them. An error says that the store could not be examined; objects stream then.
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
