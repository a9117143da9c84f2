// Package archive stores every record of a stream in a bucket, exactly once.
package archive

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"
)

// Number is the sequence number of a stream's record: decimal digits without a
// leading zero, of any length. "0" is the beginning of a shard.
type Number string

// Compare orders numbers by length, then by text, which is their order as numbers.
func (n Number) Compare(m Number) int {
	return cmp.Or(cmp.Compare(len(n), len(m)), strings.Compare(string(n), string(m)))
}

// Record is what a producer has put. Several may share a Number: those of one
// aggregate, told apart by Sub.
type UserRecord struct {
	Number       Number
	Sub          int // place within its aggregate, from 0; -1: in no aggregate
	PartitionKey string
	HashKey      string // explicit hash key, in decimal digits; mostly empty
	Arrival      time.Time
	Data         []byte
}

// Entry is one record of the stream itself: a single Record, or an aggregate of
// several, which is never cut in two.
type Record struct {
	Number      Number
	Arrival     time.Time
	UserRecords []UserRecord
	// Malformed says why what looks like an aggregate cannot be read. Records is
	// empty then, and Raw holds its bytes.
	Malformed    error
	Raw          []byte
	PartitionKey string // of the entry itself
}

// StreamID names a stream for good: a stream that is made anew under its name is
// another.
type StreamID struct {
	ARN     string
	Created time.Time
}

// Shard is a part of a stream whose entries have an order.
type Shard struct {
	ID      string
	Parents []string // finished before this one begins; at most two
	First   Number   // where its range of numbers begins
	Last    Number   // where it ends; empty while it is open

	unlisted bool // the stream does not know it any more
}

// Position says where reading begins. The zero Position is the oldest entry that
// is kept.
type Position struct {
	At   Number    // at this entry, which must still be there
	Time time.Time // at the first entry that arrived then or later
}

// Page is what one read has returned.
type Page struct {
	Records []Record      // in order of their numbers
	Behind  time.Duration // how far the end of the shard is ahead
	End     bool          // the shard is closed, and this is its last page
}

// Stream is a stream of records in shards.
type Stream interface {
	// Identify returns the stream's name for good, and how long it keeps records.
	Identify(ctx context.Context) (StreamID, time.Duration, error)
	// Shards returns all shards that the stream still knows.
	Shards(ctx context.Context) ([]Shard, error)
	// Open begins to read a shard. A driver opens anew by itself, at the last
	// entry read, where its place in the stream expires.
	Open(ctx context.Context, shard string, from Position) (Reader, error)
}

// Reader reads a shard. It is not safe for concurrent use.
type Reader interface {
	// Next returns the next page, which may be empty. It waits as the stream's
	// limits demand.
	Next(ctx context.Context) (Page, error)
}

// What a Stream's operation answered. A driver wraps these with the facts.
var (
	// ErrGone: the position is older than what the stream keeps.
	ErrGone = errors.New("records have expired")
	// ErrNoStream: no such stream, or no such shard.
	ErrNoStream = errors.New("stream not found")
	// ErrDenied: no permission, or no valid credentials.
	ErrDenied = errors.New("access to the stream denied")
	// ErrUnavailable: a read failed for a passing reason, such as throttling.
	ErrUnavailable = errors.New("stream unavailable")
)
