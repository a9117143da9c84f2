package ledger

import (
	"context"
	"iter"
	"time"

	"github.com/pawlhq/pawl/store"
)

// Change is one compare-and-swap.
type Change struct {
	Key RowKey
	// Expect is the nonce that the stored row must have. The zero Nonce requires that
	// there is no row.
	Expect Nonce
	// Row is the next row, with a fresh nonce; nil deletes the row. The store does not keep
	// or modify it.
	Row *Row
}

// Outcome is the answer to one Change.
type Outcome struct {
	Applied bool
	// Current is the row that refused the change, nil if there is none.
	Current *Row
	// Err: the result is unknown. The change may have been applied, or may still be.
	Err error
}

// Store keeps rows. [Rows] implements it in any record store. It is safe for concurrent
// use by several goroutines and processes.
//
// A row that cannot be read is returned as an [Row.Unreadable] row. It does not fail the
// call.
type Store interface {
	// Swap applies each change independently, in any order. Outcome i answers change i.
	// The caller ensures that the keys of a batch are distinct. A refused change is not an
	// error. After an error, every change may have been applied, or may still be.
	Swap(ctx context.Context, changes []Change) ([]Outcome, error)
	// Load returns the existing rows of keys, in any order.
	Load(ctx context.Context, keys []RowKey) ([]Row, error)
	// Due returns rows of a pipeline that are due at or before the given time. If more
	// than limit are due, it returns limit of the oldest ones, so that workers share them.
	Due(ctx context.Context, pipeline string, before time.Time, limit int) ([]Row, error)
	// Scan yields the rows of a range, ordered by pipeline, bucket, key and version ID, each
	// byte by byte. It yields a row once if the row exists during the whole scan, and at
	// most once if the row is created or deleted meanwhile. An error ends the scan.
	Scan(ctx context.Context, r Range) iter.Seq2[Row, error]
	// Close releases the store's resources. No call may follow or be in progress.
	Close() error
}

// Errors of a ledger.
var (
	ErrUnusable = store.ErrUnusable
	ErrRejected = store.ErrRejected
)
