package parts

import (
	"context"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/cmd/pawl/config"
	"github.com/pawlhq/pawl/source/sqssource"
)

// SQS receives notifications from an Amazon SQS queue.
type SQS struct {
	// URL of the queue, https://sqs.REGION.amazonaws.com/ACCOUNT/NAME.
	URL string `yaml:"url" jsonschema:"required"`
	// Format of the notifications. Default: auto.
	Dialect config.Dialect `yaml:"dialect"`
}

// Build implements [Source].
func (s SQS) Build(ctx context.Context, a *Assembly) (pawl.Source, error) {
	return sqssource.New(ctx, sqssource.Config{URL: s.URL, Dialect: s.Dialect.Event(), ShutdownTimeout: a.ShutdownTimeout, Logger: a.Logger})
}

// MaxMessage implements [Queue].
func (s SQS) MaxMessage(ctx context.Context, a *Assembly) (size, needed int64, err error) {
	q, err := sqssource.New(ctx, sqssource.Config{URL: s.URL, Logger: a.Logger})
	if err != nil {
		return 0, 0, err
	}
	size, err = q.MaxMessage(ctx)
	return size, sqssource.MinMessage, err
}

// Describe implements [Source].
func (s SQS) Describe() string { return s.URL }
