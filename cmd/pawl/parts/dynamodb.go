package parts

import (
	"context"
	"time"

	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/dynamo"
)

// DynamoDB is a ledger in a table of DynamoDB: dynamodb://TABLE?region=REGION.
type DynamoDB struct {
	// URL of the table; region and endpoint are its parameters.
	URL string `yaml:"url"`
}

func parseDynamoDB(rest, _ string) (DynamoDB, error) {
	d := DynamoDB{"dynamodb:" + rest}
	_, _, _, err := dynamo.Parse(d.URL)
	return d, err
}

// Open implements [Ledger].
func (d DynamoDB) Open(ctx context.Context) (store.Store, error) { return dynamo.Open(ctx, d.URL) }

// OpenReadOnly implements [Ledger].
func (d DynamoDB) OpenReadOnly(ctx context.Context) (store.Store, error) {
	return dynamo.OpenReadOnly(ctx, d.URL)
}

// CheckExists implements [Ledger]. Open reports a missing table.
func (d DynamoDB) CheckExists(context.Context) error { return nil }

// Describe implements [Ledger].
func (d DynamoDB) Describe() string { return d.URL }

// Create implements [Creator].
func (d DynamoDB) Create(ctx context.Context) error { return dynamo.Create(ctx, d.URL) }

// Check implements [Checker].
func (d DynamoDB) Check(ctx context.Context, skew time.Duration) ([]Finding, error) {
	return dynamo.Check(ctx, d.URL, skew)
}
