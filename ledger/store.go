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
	// Expect is the required nonce. The zero Nonce requires that there is no row.
	Expect Nonce
	// Row is the next row, with a fresh nonce, which the store must not modify; nil deletes the
	// row.
	Row *Row
}

// Outcome is the answer to one Change.
type Outcome struct {
	Applied bool
	// Current is the row that refused the change; nil if there is none.
	Current *Row
	// Err: the change may have been applied, or may still be.
	Err error
}

// Store keeps rows. It is safe for concurrent use by goroutines and processes.
type Store interface {
	// Swap applies each change independently, in any order. Outcome i answers change i. The keys
	// must be distinct. After an error, every change may have been applied, or may still be.
	Swap(ctx context.Context, changes []Change) ([]Outcome, error)
	// Load returns the existing rows of keys, in any order.
	Load(ctx context.Context, keys []RowKey) ([]Row, error)
	// Due returns the rows that are due at or before the given time. If there are more than limit,
	// it returns limit of the oldest.
	Due(ctx context.Context, pipeline string, before time.Time, limit int) ([]Row, error)
	// Scan yields the rows of a range in the order of [RowKey.Compare]. A row that exists during the
	// whole scan appears once, and any other row at most once. An error ends the scan.
	Scan(ctx context.Context, r Range) iter.Seq2[Row, error]
	// Close releases the store's resources. No call may follow or be in progress.
	Close() error
}

// Errors of a ledger.
var (
	ErrUnusable = store.ErrUnusable
	ErrRejected = store.ErrRejected
)
