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

// RowKey names a row: one object for one pipeline.
type RowKey struct {
	Pipeline string
	Bucket   string
	Key      string
	// VersionID is set only for pipelines that treat every version of an
	// object as a thing of its own.
	VersionID string
}

// Object returns the object that the row is about.
func (k RowKey) Object() event.Object {
	return event.Object{Bucket: k.Bucket, Key: k.Key, VersionID: k.VersionID}
}

// Compare orders keys by pipeline, bucket, key and version id, each byte by
// byte.
func (k RowKey) Compare(o RowKey) int {
	return cmp.Or(
		cmp.Compare(k.Pipeline, o.Pipeline), cmp.Compare(k.Bucket, o.Bucket),
		cmp.Compare(k.Key, o.Key), cmp.Compare(k.VersionID, o.VersionID))
}

// String prints pipeline and object, quoted where needed.
func (k RowKey) String() string { return event.Quote(k.Pipeline) + " " + k.Object().String() }

// Digest names the row in 32 printable characters, where the key itself is too long.
func (k RowKey) Digest() string { return k.digest() }

func (k RowKey) digest(more ...string) string {
	b := make([]byte, 0, 512)
	for _, s := range append([]string{k.Pipeline, k.Bucket, k.Key, k.VersionID}, more...) {
		b = strconv.AppendInt(b, int64(len(s)), 10) // so that no two lists read alike
		b = append(append(b, ':'), s...)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// Nonce is what compare-and-swap compares. The zero Nonce stands for "no row".
type Nonce = store.Nonce

// Lease is one worker's exclusive right to act on an object.
type Lease struct {
	Owner string // empty: nobody holds it
	// Fence is the fencing token. It rises with every claim, also across
	// purge and re-creation of the row, and stays when the lease ends.
	Fence int64
	// Until is when others may take over: the holder's time-out plus the
	// margin for clock skew. The holder stops before that.
	Until time.Time
}

// Row is all that Pawl knows of one object in one pipeline. [Encode] writes its stored form.
//
// A Row is a value: History is never changed in place, so a copy is safe.
type Row struct {
	RowKey
	Nonce Nonce
	// Unreadable says why the stored row cannot be read. Then only its key and
	// nonce are known. It is never claimed, settled or due; the callers of the other
	// transitions leave it alone.
	Unreadable error

	Want  Version
	Have  Version
	Lease Lease
	// Doubt: an attempt that did not complete may have sent something. The next
	// one must not trust Have when it decides that there is nothing to do.
	Doubt bool
	// Forced: an operator demands the effect again, even where it is committed.
	Forced    bool
	Attempts  int
	RetryAt   time.Time
	LastError string
	Dead      bool
	VerifyAt  time.Time
	EventTime time.Time
	// Disorder counts the events since Want's sequencer that it made stale, though
	// their own time was newer than that of all before them.
	Disorder int
	// CreatedTime is that of the newest created event seen, or of the object
	// itself where an audit saw it.
	CreatedTime time.Time
	History     []Entry
	CreatedAt   time.Time
	UpdatedAt   time.Time
	// Unknown is a JSON object with the members of the stored row that a newer Pawl wrote
	// and this one does not know. They are written back.
	Unknown string
}

// Settled reports that the wanted version's effect is committed.
func (r *Row) Settled() bool { return r.Unreadable == nil && r.Want.Compare(r.Have) == 0 }

// Held reports that a worker has a lease, live or expired.
func (r *Row) Held() bool { return r.Lease.Owner != "" }

// Live reports that somebody has a lease that has not expired.
func (r *Row) Live(now time.Time) bool { return r.Held() && now.Before(r.Lease.Until) }

// Due returns when a worker should next look at the row, rounded up to a millisecond: at a
// retry, a lease's expiry or a verification. The zero time means never, until something
// raises Want.
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

// State is what a row amounts to, for people.
type State string

// The states. A dead row's Have may lag for good; all others settle by
// themselves.
const (
	StateSettled    State = "settled"
	StatePending    State = "pending"
	StateProcessing State = "processing"
	StateStuck      State = "stuck"  // its lease expired
	StateFailed     State = "failed" // backing off
	StateDead       State = "dead"
	// StateUnreadable: a newer Pawl wrote the row, or it is damaged.
	StateUnreadable State = "unreadable"
)

// States lists every state.
var States = []State{StateSettled, StatePending, StateProcessing, StateStuck, StateFailed, StateDead, StateUnreadable}

// State derives the row's state.
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
