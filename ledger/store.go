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
	// Expect is the nonce that the stored row must carry; the zero Nonce
	// demands that there is no row.
	Expect Nonce
	// Row is the next row, with a fresh nonce; nil deletes. The store does
	// not keep or change it.
	Row *Row
}

// Outcome is the answer to one Change.
type Outcome struct {
	Applied bool
	// Current is the row that refused the change, nil where there is none.
	Current *Row
	// Err: there is no answer. The change may have been applied, or may yet be.
	Err error
}

// Store keeps rows. [Rows] does, in any record store; others wrap it. It is safe for
// concurrent use, also by several processes.
//
// A row that cannot be read is returned as one that is [Row.Unreadable]: it fails
// no call, and stops no other row.
type Store interface {
	// Swap applies each change alone, in any order: outcome i answers change i.
	// The keys of a batch are distinct, which the caller sees to. A refused
	// change is no error. After an error there is no answer to any change: each
	// may have been applied, or may yet be.
	Swap(ctx context.Context, changes []Change) ([]Outcome, error)
	// Load returns the rows of keys that exist, in any order.
	Load(ctx context.Context, keys []RowKey) ([]Row, error)
	// Due returns rows of a pipeline whose Row.Due is set and not after before. If more
	// than limit are due, it returns limit of the oldest, so that workers share them.
	Due(ctx context.Context, pipeline string, before time.Time, limit int) ([]Row, error)
	// Scan yields the rows of a range, ordered by pipeline, bucket, key and
	// version id, each byte by byte. It yields a row that is there throughout
	// once, and a row that comes or goes meanwhile once or not at all. An error
	// ends it.
	Scan(ctx context.Context, r Range) iter.Seq2[Row, error]
	// Close releases what the store holds. No call may follow or be under
	// way.
	Close() error
}

// Errors of a ledger.
var (
	ErrUnusable = store.ErrUnusable
	ErrRejected = store.ErrRejected
)
