package lock

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/pawlhq/pawl/event"
)

// State is what a lease object says of its lock.
type State string

// The states of a lock.
const (
	Held     State = "held"
	Released State = "released"
)

// Record is the content of a lease object.
type Record struct {
	State State `json:"state"`
	// Token is the fencing token: it rises with every acquisition and every
	// forced release.
	Token int64 `json:"token"`
	// Nonce is fresh in every write, 128 random bits: it tells our writes
	// from all others, and gives each an ETag of its own.
	Nonce string `json:"nonce"`
	// ID is what the holder calls this lease: the number of a build, say.
	ID string `json:"id,omitempty"`
	// Owner, Host, PID and Reason say who holds it, or held it last, and why.
	Owner  string `json:"owner,omitempty"`
	Host   string `json:"host,omitempty"`
	PID    int    `json:"pid,omitempty"`
	Reason string `json:"reason,omitempty"`
	// TTL is how long the lease lasts after each write, in milliseconds.
	TTL int64 `json:"ttl_ms"`
	// Since is when it was acquired or released, by the clock of who did, in UTC.
	// It is for people: nothing compares it.
	Since time.Time `json:"since"`
	// Limit is how many may hold the semaphore that this is a slot of.
	Limit int `json:"limit,omitempty"`
	// Before are the nonces of the writes before, the newest first.
	Before []string `json:"prev_nonces,omitempty"`
}

// format stands in every lease object. Its number rises when an older Pawl must
// not touch what a newer one wrote.
const (
	format       = "pawl-lock/1"
	formatFamily = "pawl-lock/"
)

// wire is a Record as it is stored.
type wire struct {
	Format string `json:"format"`
	Record
}

const (
	// maxBefore is how many nonces are carried forward: one for each acquisition,
	// renewal and release.
	maxBefore = 64
	// maxRecord bounds what is read of an object, in bytes.
	maxRecord = 32 << 10
	// maxNonce bounds a nonce, in bytes.
	maxNonce = 64
)

// What is found in the place of a lease.
var (
	// ErrForeign: the object is no lease of Pawl. It is left as it is.
	ErrForeign = errors.New("the object is not a lock")
	// ErrNewer: a newer Pawl wrote the lease, in a format unknown to this one.
	ErrNewer = errors.New("the lock was written by a newer version of Pawl: update this one")
)

func (r *Record) encode() []byte {
	b, err := json.Marshal(wire{Format: format, Record: *r})
	if err != nil {
		panic(err) // there is nothing in it that cannot be JSON
	}
	return append(b, '\n')
}

// decode reads a lease object. It is strict, so that an object that is no lease is
// never overwritten.
func decode(b []byte) (Record, error) {
	var head struct {
		Format string `json:"format"`
	}
	if err := jsonv2.Unmarshal(b, &head); err != nil {
		return Record{}, fmt.Errorf("%w: its content is not the JSON of a lease", ErrForeign)
	}
	switch {
	case !strings.HasPrefix(head.Format, formatFamily):
		return Record{}, fmt.Errorf("%w: its format is not %q", ErrForeign, format)
	case head.Format != format:
		return Record{}, fmt.Errorf("%w: its format is %s", ErrNewer, event.Quote(head.Format))
	}
	var w wire
	if err := jsonv2.Unmarshal(b, &w); err != nil {
		return Record{}, fmt.Errorf("%w: its fields do not match a lease", ErrForeign)
	}
	if err := w.check(); err != nil {
		return Record{}, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	return w.Record, nil
}

// check returns an error for what no Pawl writes.
func (r *Record) check() error {
	switch {
	case r.State != Held && r.State != Released:
		return fmt.Errorf("its state is %s", event.Quote(string(r.State)))
	case r.Token < 1 || r.Token >= 1<<62: // the next ones must not overflow
		return fmt.Errorf("its token is %d", r.Token)
	case len(r.Nonce) < 8 || len(r.Nonce) > maxNonce:
		return errors.New("its nonce has a wrong length")
	case r.TTL < MinTTL.Milliseconds() || r.TTL > MaxTTL.Milliseconds():
		return fmt.Errorf("its ttl_ms is %d", r.TTL)
	case len(r.ID) > MaxID || len(r.Owner) > MaxText || len(r.Reason) > MaxText || len(r.Host) > MaxText:
		return errors.New("its holder's description is too long")
	case slices.ContainsFunc(r.Before, func(n string) bool { return len(n) > maxNonce }):
		return errors.New("an earlier nonce is too long")
	case r.Limit < 0 || r.Limit > MaxSlots:
		return fmt.Errorf("its limit is %d", r.Limit)
	}
	return nil
}

func (r *Record) ttl() time.Duration { return time.Duration(r.TTL) * time.Millisecond }

// next is the record of the write after r: a fresh nonce, and r's own carried
// forward.
func (r *Record) next(nonce string) Record {
	n := *r
	n.Before = slices.Concat([]string{r.Nonce}, r.Before)
	n.Before = n.Before[:min(len(n.Before), maxBefore)]
	n.Nonce = nonce
	return n
}

// first is the record of a lock that has no object: the holder's. Its token is
// the time in microseconds, which no earlier object of the key has reached: a
// lock is not taken a million times a second.
func first(holder *Record, nonce string, now time.Time) Record {
	n := *holder
	n.State, n.Nonce, n.Since = Held, nonce, now.UTC()
	n.Token = max(now.UnixMicro(), 1)
	return n
}

// acquired is the record after a holder has acquired the lock.
func (r *Record) acquired(holder *Record, nonce string, now time.Time) Record {
	was := r.next(nonce)
	n := *holder
	n.State, n.Nonce, n.Before, n.Since = Held, nonce, was.Before, now.UTC()
	n.Token = r.Token + 1
	return n
}

// renewed is the record after its holder has renewed it.
func (r *Record) renewed(nonce string) Record { return r.next(nonce) }

// released is the record after its holder has released it.
func (r *Record) released(nonce string, now time.Time) Record {
	n := r.next(nonce)
	n.State, n.Since = Released, now.UTC()
	return n
}

// forced returns the record after a release by force: the token rises, so that
// whatever the old holder still does can be refused.
func (r *Record) forced(nonce string, now time.Time) Record {
	n := r.released(nonce, now)
	n.Token++
	return n
}
