package pipelinecmd

import (
	"context"
	"errors"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/cmd/pawl/app"
)

// copier uses server-side copies once Prove has found safe methods.
type copier interface {
	Prove(ctx context.Context, store bucket.Store, to pawl.Output) (bucket.CopyMethod, error)
}

// If the store ignores conditions on copies, this process downloads and uploads the objects.
func proveCopies(ctx context.Context, m *app.Runtime) {
	ctx, stop := context.WithTimeout(ctx, bucketCheckTimeout)
	defer stop()
	for i := range m.Parts.Pipelines {
		p := &m.Parts.Pipelines[i]
		c, ok := p.Handler.(copier)
		if !ok {
			continue
		}
		switch methods, err := c.Prove(ctx, m.Objects, *p.To); {
		case errors.Is(err, bucket.ErrUnavailable), errors.Is(err, bucket.ErrNoBucket):
			m.Log.Warn("copies stream through this process: the output's bucket is not ready; restart this process when it is, so that the object store can copy", "pipeline", p.Name, "error", err)
		case err != nil:
			m.Log.Warn("copies stream through this process until it restarts: the check of the object store failed", "pipeline", p.Name, "error", err)
		case methods == 0:
			m.Log.Info("copies stream through this process: the object store ignores conditions on copies", "pipeline", p.Name)
		default:
			m.Log.Info("the object store copies objects itself", "pipeline", p.Name, "one_request", methods&bucket.CopyWhole != 0, "in_parts", methods&bucket.CopyParts != 0)
		}
	}
}
