package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"iter"
	"time"
)

// Key identifies a record.
type Key struct {
	Space string // the unit of order and of Due; at least one byte
	Name  string // at least one byte; any bytes, ordered byte by byte
}

// Compare orders keys by space, then by name, byte by byte.
func (k Key) Compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Space, o.Space), cmp.Compare(k.Name, o.Name))
}

// Nonce is the value that compare-and-swap compares: 128 random bits, new in every write. A counter
// would restart after a deletion. The zero Nonce means "no record".
type Nonce [16]byte

// NewNonce returns a fresh random nonce.
func NewNonce() (n Nonce) {
	_, _ = rand.Read(n[:]) // never fails
	return n
}

// IsZero reports whether n is zero.
func (n Nonce) IsZero() bool { return n == Nonce{} }

// Record is the unit of storage.
type Record struct {
	Key
	Nonce Nonce     // never zero
	Due   time.Time // zero: never due. A store keeps whole milliseconds, in UTC
	Body  string    // UTF-8 without NUL, at most Traits.Body bytes
}

// Change is one compare-and-swap.
type Change struct {
	Key Key
	// Expect is the required nonce. The zero Nonce requires that there is no record.
	Expect Nonce
	// Next is the record to write, with a fresh nonce; nil deletes the record.
	Next *Record
}

// Outcome is the answer to one Change.
type Outcome struct {
	Applied bool
	// Refused: the record did not have the expected nonce. A change of an Apply that another change
	// stopped is neither applied nor refused.
	Refused bool
	// Current is the record that refused the change, or nil. If it has the expected nonce, the
	// record changed twice, and the change can be sent again.
	Current *Record
	// Err is set if the change was rejected or has no clear answer.
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
	Skip   int       // for workers that share a backlog
	Limit  int       // at least 1
}

// Range selects records of a space by name.
type Range struct {
	Space  string
	After  string // exclusive; empty: no bound
	Before string // exclusive; empty: no bound
	Newest bool   // in descending order
	Limit  int    // 0: no limit
}

// Store is a batch compare-and-swap of records, safe for concurrent use by goroutines and
// processes. A driver must not repeat a conditional write after an ambiguous answer: the first
// write would refuse it.
type Store interface {
	Traits() Traits
	// Swap makes each change independently, in any order. Outcome i answers change i. The keys must
	// be distinct, and at most Traits.Batch. An error applies to every change.
	Swap(ctx context.Context, changes []Change) ([]Outcome, error)
	// Apply makes all changes or none. The keys must be distinct, and at most Traits.Apply. If
	// nothing is applied and there is no error, at least one change is refused.
	Apply(ctx context.Context, changes []Change) ([]Outcome, error)
	// Load returns the existing records of keys, in any order.
	Load(ctx context.Context, keys []Key) ([]Record, error)
	// Due returns due records in the order of (Due, Name). A result below the limit is the last
	// one.
	Due(ctx context.Context, r DueRange) ([]Record, error)
	// Scan yields the records of a range in the order of names. A record that exists during the
	// whole scan appears once. A record that is written during the scan appears at most once. The
	// loop's body may call the store. An error ends the scan.
	Scan(ctx context.Context, r Range) iter.Seq2[Record, error]
	// Close releases the store's resources. No call may follow or be in progress.
	Close() error
}

// Unit is a kind of unit for which a database charges.
type Unit string

// Units of DynamoDB.
const (
	ReadUnits  Unit = "read"
	WriteUnits Unit = "write"
)

// Metered is a [Store] that reports the consumed units.
type Metered interface {
	// OnUnits sets the function that is called after each request, concurrently. Call it while no
	// request runs.
	OnUnits(report func(kind Unit, units float64))
}

// Tx is a user's transaction in the database of a store.
type Tx interface {
	// Lock returns the record of a key, or nil. Other clients cannot change it until the
	// transaction ends.
	Lock(ctx context.Context, k Key) (*Record, error)
	// Put replaces a record that Lock returned.
	Put(ctx context.Context, r Record) error
}

// Traits declare the properties and limits of a store. Package storetest checks them.
type Traits struct {
	// Volatile: the content may be lost when the process ends, so a worker must not rely on it to
	// acknowledge messages.
	Volatile bool
	// Local: processes on other machines cannot share the store.
	Local bool
	// Partial: each change of a Swap is its own request, whose Outcome may have an Err other than
	// ErrRejected. A worker then sends up to Batch * Swaps changes at a time, one in each Swap.
	Partial bool
	// DueLag and ScanLag are the maximum staleness of Due and Scan.
	DueLag, ScanLag time.Duration
	// Transactions: the store supports [Tx].
	Transactions bool

	Batch int // changes of one Swap
	Swaps int // useful number of concurrent Swaps
	Apply int // changes of one Apply; 0: no Apply
	Body  int // bytes of a body
	Name  int // bytes of Key.Space plus Key.Name
}

// Limits that every driver of this module supports, unless its Traits are lower.
const (
	MaxBody  = 256 << 10
	MaxName  = 2048
	MaxApply = 25
)
