package files

import (
	"context"
	"iter"
	"time"
)

// Change is what is written together, or not at all: a row, its entity's usage, and
// the idempotency key of a row that begins.
type Change struct {
	// Next is the row to write, with a fresh nonce. With Drop it is the row to
	// delete, with its idempotency key.
	Next File
	Drop bool
	// Expect is the nonce that the stored row must carry; the zero Nonce demands
	// that there is none.
	Expect Nonce
	// Add is added to the entity's usage. The index refuses a change that increases
	// bytes or open uploads to more than Limit allows.
	Add, Limit Usage
}

// Result says what became of a Change.
type Result uint8

// The results.
const (
	Applied     Result = iota
	Refused            // another row stands there
	OverQuota          // the entity would use more bytes than its limit
	TooManyOpen        // the entity would have more open uploads than its limit
	KeyTaken           // the idempotency key belongs to another file that is not Expired
)

// Outcome is the answer to a Change.
type Outcome struct {
	Result  Result
	Current *File // that refused, or that has the key; nil: no row
}

// Index keeps the rows. It is safe for concurrent use, by processes as well. It
// exists when it passes files/indextest.
type Index interface {
	// Apply makes a change, or nothing of it. After an error either may be true: the
	// change may have been made, or may yet be.
	Apply(ctx context.Context, c Change) (Outcome, error)
	// Load returns the row of a file, or ErrNotFound.
	Load(ctx context.Context, id string) (File, error)
	// ByIdempotency returns the row that an entity's request began, or ErrNotFound.
	ByIdempotency(ctx context.Context, entity, key string) (File, error)
	// List returns the Indexed files of an entity whose IDs come after one, in order
	// of ID.
	List(ctx context.Context, entity, after string, limit int) ([]File, error)
	// Held returns up to limit files of an entity that can be deleted: Pending,
	// Indexed and Lost ones, in any order.
	Held(ctx context.Context, entity string, limit int) ([]File, error)
	// Due returns rows whose LookAt is set and not after before, in order of LookAt and
	// ID: those that come after another row, or nil.
	Due(ctx context.Context, before time.Time, after *File, limit int) ([]File, error)
	// Used returns the usage of an entity.
	Used(ctx context.Context, entity string) (Usage, error)
	// Scan yields all rows after a Key, in order of Key.
	Scan(ctx context.Context, after string) iter.Seq2[File, error]
	// Close releases what the index holds.
	Close() error
}

// Check returns OverQuota or TooManyOpen if an entity with this usage has no room for the
// change, otherwise Applied.
func (c *Change) Check(used Usage) Result {
	switch {
	case c.Add.Bytes > 0 && used.Bytes+c.Add.Bytes > c.Limit.Bytes:
		return OverQuota
	case c.Add.Open > 0 && used.Open+c.Add.Open > c.Limit.Open:
		return TooManyOpen
	}
	return Applied
}

// scanPage is how many rows ScanPages reads at a time.
const scanPage = 500

// ScanPages is the Scan of an index that reads pages: up to limit rows after a Key,
// in order of Key. The loop's body may call the index.
func ScanPages(after string, read func(after string, limit int) ([]File, error)) iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		for {
			page, err := read(after, scanPage)
			if err != nil {
				yield(File{}, err)
				return
			}
			for _, f := range page {
				if !yield(f, nil) {
					return
				}
				after = f.Key
			}
			if len(page) < scanPage {
				return
			}
		}
	}
}
