package ledger

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/store"
)

// RowKey identifies a row: one object in one pipeline.
type RowKey struct {
	Pipeline string
	Bucket   string
	Key      string
	// VersionID is set only for pipelines that process each version separately.
	VersionID string
}

// Object returns the row's object.
func (k RowKey) Object() event.Object {
	return event.Object{Bucket: k.Bucket, Key: k.Key, VersionID: k.VersionID}
}

// Compare orders keys by pipeline, bucket, key and version ID, each byte by byte.
func (k RowKey) Compare(o RowKey) int {
	return cmp.Or(
		cmp.Compare(k.Pipeline, o.Pipeline), cmp.Compare(k.Bucket, o.Bucket),
		cmp.Compare(k.Key, o.Key), cmp.Compare(k.VersionID, o.VersionID))
}

func (k RowKey) String() string { return event.Quote(k.Pipeline) + " " + k.Object().String() }

// Digest returns a hash of the key as 32 hexadecimal digits.
func (k RowKey) Digest() string { return k.digest() }

func (k RowKey) digest(more ...string) string {
	b := make([]byte, 0, 512)
	for _, s := range append([]string{k.Pipeline, k.Bucket, k.Key, k.VersionID}, more...) {
		b = strconv.AppendInt(b, int64(len(s)), 10) // makes different lists distinct
		b = append(append(b, ':'), s...)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// Nonce is the value that compare-and-swap compares. The zero Nonce means "no row".
type Nonce = store.Nonce

// Lease is one worker's exclusive right to an object.
type Lease struct {
	Owner string // empty: no lease
	// Fence is the fencing token. It rises with every claim, even after a purge, and stays when the
	// lease ends.
	Fence int64
	// Until is the time from which other workers may take over: the holder's deadline plus the skew.
	Until time.Time
}

// Row is the state of one object in one pipeline. It is a value: no method changes History in
// place.
type Row struct {
	RowKey
	Nonce Nonce
	// Unreadable is the reason why the stored row cannot be read, or nil. No transition applies to
	// such a row.
	Unreadable error

	Want  Version
	Have  Version
	Lease Lease
	// Doubt: an earlier attempt may have had an effect, so Have alone proves nothing.
	Doubt bool
	// Forced: an operator requests the effect again.
	Forced    bool
	Attempts  int
	RetryAt   time.Time
	LastError string
	Dead      bool
	VerifyAt  time.Time
	EventTime time.Time
	// Disorder counts disordered events since Want's sequencer.
	Disorder int
	// CreatedTime is the time of the newest created event, or of the object that an audit saw.
	CreatedTime time.Time
	History     []Entry
	CreatedAt   time.Time
	UpdatedAt   time.Time
	// Unknown has JSON members that a newer Pawl wrote.
	Unknown string
}

// Settled reports whether the effect of the wanted version is committed.
func (r *Row) Settled() bool { return r.Unreadable == nil && r.Want.Compare(r.Have) == 0 }

// Held reports whether a worker has a lease, live or expired.
func (r *Row) Held() bool { return r.Lease.Owner != "" }

// Live reports whether a worker has a lease that has not expired.
func (r *Row) Live(now time.Time) bool { return r.Held() && now.Before(r.Lease.Until) }

// Due returns when a worker should process the row, rounded up to a millisecond, or zero.
func (r *Row) Due() time.Time {
	due := r.dueTime()
	if ms := due.Truncate(time.Millisecond); !ms.Equal(due) {
		due = ms.Add(time.Millisecond)
	}
	return due
}

func (r *Row) dueTime() time.Time {
	switch {
	case r.Dead, r.Unreadable != nil:
		return time.Time{}
	case r.Held():
		return r.Lease.Until
	case !r.Settled() && r.RetryAt.IsZero():
		return r.UpdatedAt
	case !r.Settled():
		return r.RetryAt
	case !r.VerifyAt.IsZero() && r.RetryAt.After(r.VerifyAt):
		return r.RetryAt
	}
	return r.VerifyAt
}

// State summarizes a row for people.
type State string

// Rows in all states except dead and unreadable become settled without an operator.
const (
	StateSettled    State = "settled"
	StatePending    State = "pending"
	StateProcessing State = "processing"
	StateStuck      State = "stuck"  // under an expired lease
	StateFailed     State = "failed" // backing off
	StateDead       State = "dead"
	StateUnreadable State = "unreadable"
)

// States lists all states.
var States = []State{StateSettled, StatePending, StateProcessing, StateStuck, StateFailed, StateDead, StateUnreadable}

// State returns the row's state at the given time.
func (r *Row) State(now time.Time) State {
	switch {
	case r.Unreadable != nil:
		return StateUnreadable
	case r.Dead:
		return StateDead
	case r.Live(now):
		return StateProcessing
	case r.Held():
		return StateStuck
	case r.Settled():
		return StateSettled
	case !r.RetryAt.IsZero():
		return StateFailed
	}
	return StatePending
}
