package archive

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"
)

// Number is a sequence number in decimal digits, without a leading zero. The number of every record
// is greater than "0".
type Number string

// Compare compares the numeric values of n and m.
func (n Number) Compare(m Number) int {
	return cmp.Or(cmp.Compare(len(n), len(m)), strings.Compare(string(n), string(m)))
}

// UserRecord is a record that a producer has put. The user records of an aggregate have the same
// Number.
type UserRecord struct {
	Number       Number
	Sub          int // index in its aggregate; -1 outside of one
	PartitionKey string
	HashKey      string // decimal digits; usually empty
	Arrival      time.Time
	Data         []byte
}

// Record is a user record or an aggregate, which an archive never splits.
type Record struct {
	Number      Number
	Arrival     time.Time
	UserRecords []UserRecord
	// Malformed is the reason why the record cannot be parsed or stored. Then UserRecords is empty.
	Malformed    error
	Raw          []byte
	PartitionKey string // of the record itself
}

// StreamID identifies a stream. A stream that is created again with the same name has another ID.
type StreamID struct {
	ARN     string
	Created time.Time
}

// Shard is an ordered part of a stream.
type Shard struct {
	ID      string
	Parents []string // at most two; they end before this shard begins
	First   Number
	Last    Number // empty while the shard is open

	unlisted bool
}

// Position is where a reader starts. Zero means the oldest record.
type Position struct {
	At   Number    // start at this record, which must exist
	Time time.Time // start at the first record that arrived then or later
}

// Page is the result of one read.
type Page struct {
	Records []Record      // in ascending order
	Behind  time.Duration // until the end of the shard
	End     bool          // the shard is closed, and this is its last page
}

// Stream reads a stream of records in shards.
type Stream interface {
	Identify(ctx context.Context) (StreamID, time.Duration, error)
	Shards(ctx context.Context) ([]Shard, error)
	Open(ctx context.Context, shard string, from Position) (Reader, error)
}

// Reader reads one shard. It is not safe for concurrent use.
type Reader interface {
	// Next returns the next page, which may be empty. It respects the rate limits of the stream.
	Next(ctx context.Context) (Page, error)
}

// The kinds of errors of a Stream. A driver wraps them with details.
var (
	// ErrGone is returned if the record at the position has expired.
	ErrGone = errors.New("records have expired")
	// ErrNoStream is returned if the stream or the shard does not exist.
	ErrNoStream = errors.New("stream not found")
	// ErrDenied is returned if the credentials are invalid or lack a permission.
	ErrDenied = errors.New("access to the stream denied")
	// ErrUnavailable is returned after a transient failure, such as throttling.
	ErrUnavailable = errors.New("stream unavailable")
)
