// Package copyaction copies objects to another bucket or prefix.
package copyaction

import (
	"context"
	"io"

	"github.com/pawlhq/pawl"
)

// Config has nothing to choose: where the copy goes is the pipeline's output.
type Config struct{}

// New returns a handler whose output is the object itself, with its content
// type. The bytes stream from the one place to the other and are never held
// here, so the size of an object costs no memory. The object's metadata is not
// copied: an output's metadata is Pawl's own.
//
// One upload carries it, so the store's limit for a single PUT holds: 5 GiB on
// S3.
func New(Config) (pawl.Handler, error) {
	return pawl.HandlerFunc(handle), nil
}

func handle(ctx context.Context, t *pawl.Task) error {
	return t.Publish(t.Info.ContentType, t.Info.Size, func() (io.ReadCloser, error) {
		return t.Open(ctx)
	})
}
