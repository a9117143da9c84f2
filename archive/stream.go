// Package archive stores every record of a stream in a bucket, exactly once.
package archive

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"
)

// Number is the sequence number of a record. It has any number of decimal digits, without a leading
// zero. "0" is less than the number of every record.
type Number string

// Compare compares the numeric values of n and m.
func (n Number) Compare(m Number) int {
	return cmp.Or(cmp.Compare(len(n), len(m)), strings.Compare(string(n), string(m)))
}

// UserRecord is a record that a producer has put. The user records of one aggregate have the same
// Number but different values of Sub.
type UserRecord struct {
	Number       Number
	Sub          int // index within its aggregate, from 0; -1 if it is not in an aggregate
	PartitionKey string
	HashKey      string // explicit hash key in decimal digits; usually empty
	Arrival      time.Time
	Data         []byte
}

// Record is a record of the stream. It contains one user record, or is an aggregate of several user
// records. An archive never splits an aggregate.
type Record struct {
	Number      Number
	Arrival     time.Time
	UserRecords []UserRecord
	// Malformed is the reason why the record cannot be parsed or stored. If it is set, UserRecords
	// is empty and Raw contains the bytes of the record.
	Malformed    error
	Raw          []byte
	PartitionKey string // of the record itself, not of its user records
}

// StreamID identifies a stream. A stream that is deleted and created again with the same name
// has another ID.
type StreamID struct {
	ARN     string
	Created time.Time
}

// Shard is an ordered part of a stream.
type Shard struct {
	ID      string
	Parents []string // the shards that this one replaced, at most two; they end before it begins
	First   Number   // start of its range of numbers
	Last    Number   // end of its range of numbers; empty while the shard is open

	unlisted bool // the stream no longer lists the shard
}

// Position is the position where a reader starts. The zero Position means the oldest record.
type Position struct {
	At   Number    // start at this record, which must still exist
	Time time.Time // start at the first record that arrived at this time or later
}

// Page is the result of one read.
type Page struct {
	Records []Record      // in ascending order of their numbers
	Behind  time.Duration // time from the read position to the end of the shard
	End     bool          // the shard is closed, and this is its last page
}

// Stream reads a stream of records in shards.
type Stream interface {
	// Identify returns the ID of the stream and its retention.
	Identify(ctx context.Context) (StreamID, time.Duration, error)
	// Shards returns all shards that the stream still lists.
	Shards(ctx context.Context) ([]Shard, error)
	// Open returns a reader that starts at from. If the iterator of the reader expires later, the
	// driver opens the shard again at the last record that the reader returned.
	Open(ctx context.Context, shard string, from Position) (Reader, error)
}

// Reader reads one shard. It is not safe for concurrent use.
type Reader interface {
	// Next returns the next page, which may be empty. It waits as long as the rate limits of
	// the stream require.
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
