package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"iter"
	"time"
)

// Key names a record.
type Key struct {
	Space string // the unit of order, and of Due; at least one byte
	Name  string // at least one byte; any bytes, ordered byte by byte
}

// Compare orders keys by space, then by name, byte by byte.
func (k Key) Compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Space, o.Space), cmp.Compare(k.Name, o.Name))
}

// Nonce is what compare-and-swap compares: 128 random bits, new in every write. A
// counter would restart when a deleted record comes back, and a swap from a stale cache
// would then succeed. The zero Nonce stands for "no record".
type Nonce [16]byte

// NewNonce returns a fresh random nonce.
func NewNonce() (n Nonce) {
	_, _ = rand.Read(n[:]) // never fails
	return n
}

// IsZero reports that the nonce stands for "no record".
func (n Nonce) IsZero() bool { return n == Nonce{} }

// Record is what a store keeps.
type Record struct {
	Key
	Nonce Nonce     // never zero
	Due   time.Time // the zero time: never due. A store keeps whole milliseconds, in UTC
	Body  string    // UTF-8 without NUL, at most Traits.Body bytes
}

// Change is one compare-and-swap.
type Change struct {
	Key Key
	// Expect is the nonce that the record must have. The zero Nonce requires that
	// there is no record.
	Expect Nonce
	// Next is the record to write, with the Key of the change and a fresh nonce; nil
	// deletes.
	Next *Record
}

// Outcome is the answer to one Change.
type Outcome struct {
	Applied bool
	// Refused: the record did not have the expected nonce. In an Apply that another
	// change stopped, a change is neither applied nor refused.
	Refused bool
	// Current is the record that refused the change; nil with Refused: there is none.
	// It may have the expected nonce, if the record changed twice: send again.
	Current *Record
	// Err: the change has no answer, or will never have one. See the errors of this
	// package.
	Err error
}

// Place is a position in the order of due records.
type Place struct {
	Due  time.Time
	Name string
}

// DueRange selects due records of a space, in the order of their time and name.
type DueRange struct {
	Space  string
	After  Place     // exclusive; the zero Place is the beginning
	Before time.Time // inclusive: the latest time
	Skip   int       // records to leave out first, so that workers can share a backlog
	Limit  int       // the most records to return, at least 1
}

// Range selects records of a space by name.
type Range struct {
	Space  string
	After  string // exclusive lower bound; empty: no bound
	Before string // exclusive upper bound; empty: no bound
	Newest bool   // in descending order of names
	Limit  int    // the most records to return; 0: all
}

// Store is a batch compare-and-swap of records. It is safe for concurrent use, also by
// several processes.
//
// A driver never repeats a conditional write by itself after an ambiguous answer,
// because the repetition would be refused by its own first copy.
type Store interface {
	Traits() Traits
	// Swap makes each change alone, in any order: outcome i answers change i. The keys
	// must be distinct, and there are at most Traits.Batch of them. An error of the
	// call is the error of every change.
	Swap(ctx context.Context, changes []Change) ([]Outcome, error)
	// Apply makes all changes or none. The keys must be distinct, and there are at most
	// Traits.Apply of them. At least one change is refused where none is applied and
	// there is no error. An error of the call is the error of every change.
	Apply(ctx context.Context, changes []Change) ([]Outcome, error)
	// Load returns the records that exist of keys, in any order.
	Load(ctx context.Context, keys []Key) ([]Record, error)
	// Due returns due records in the order of (Due, Name). Fewer than the limit mean
	// that there are no more.
	Due(ctx context.Context, r DueRange) ([]Record, error)
	// Scan yields the records of a range in the order of names. A record that exists
	// throughout is yielded once; one that is written meanwhile once or not at all. The
	// loop's body may call the store. An error ends the scan.
	Scan(ctx context.Context, r Range) iter.Seq2[Record, error]
	// Close releases what the store holds. No call may follow or be under way.
	Close() error
}

// Tx is a transaction of the user's own, in the database of a store. What it writes is
// committed together with the user's writes.
type Tx interface {
	// Lock returns the record of a key, or nil, and keeps others from changing it until
	// the transaction ends.
	Lock(ctx context.Context, k Key) (*Record, error)
	// Put replaces a record that Lock returned.
	Put(ctx context.Context, r Record) error
}

// Traits declare what a store does and how much it takes. Package storetest holds a
// driver to them.
type Traits struct {
	// Volatile: the store may forget when its process ends. A message must not be
	// acknowledged because of what it answered.
	Volatile bool
	// Local: the store is in this process or in a file, so processes on other machines
	// cannot share it.
	Local bool
	// Partial: an Outcome of Swap may have an Err other than ErrRejected. Otherwise an
	// answer is an answer to all changes of the batch.
	Partial bool
	// DueLag and ScanLag are how old the state can be that Due and Scan show.
	DueLag, ScanLag time.Duration
	// Transactions: the store can join a transaction of the user. See [Tx].
	Transactions bool

	Batch int // changes of one Swap
	Swaps int // calls of Swap that are worth having under way at once
	Apply int // changes of one Apply; 0: the store has no Apply
	Body  int // bytes of a body
	Name  int // bytes of a space and a name together
}

// Limits that every driver of this module supports, except where its Traits say less.
const (
	MaxBody  = 256 << 10
	MaxName  = 2048
	MaxApply = 25
)
