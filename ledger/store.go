package ledger

import (
	"context"
	"errors"
	"iter"
	"time"
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
	// Token is the backend's own token of the row just written, for those
	// that have one.
	Token string
	// Err: there is no answer. The change may have been applied, or may yet be.
	Err error
}

// Store is a batch compare-and-swap, and nothing more: the protocol is above
// it, once. It is safe for concurrent use, by processes as well.
//
// A row that cannot be read is returned as one that is [Row.Unreadable]: it fails
// no call, and stops no other row.
//
// A backend exists when it passes ledger/ledgertest.
type Store interface {
	// Swap applies each change alone, in any order: outcome i answers change i.
	// The keys of a batch are distinct, which the caller sees to. A refused
	// change is no error. After an error there is no answer to any change: each
	// may have been applied, or may yet be.
	Swap(ctx context.Context, changes []Change) ([]Outcome, error)
	// Load returns the rows of keys that exist, in any order.
	Load(ctx context.Context, keys []RowKey) ([]Row, error)
	// Due returns rows of a pipeline whose Row.Due is set and not after
	// before, earliest first; of those due at the same instant, any first. It
	// goes by pipeline so that the rows of one that no worker runs any more
	// cannot stand in the way of the others.
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

// ErrUnusable says that a ledger cannot be opened, or used any longer, as it is:
// read-only, locked, corrupt, of a newer format, or gone from its place. No
// retry cures it. The wrapping error says which it is, and what to do.
var ErrUnusable = errors.New("ledger unusable")
