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

// State is the state of a lock in its lease object.
type State string

// The states of a lock.
const (
	Held     State = "held"
	Released State = "released"
)

// Record is the content of a lease object.
type Record struct {
	State State `json:"state"`
	// Token is the fencing token. It rises with every acquisition and every forced release.
	Token int64 `json:"token"`
	// Nonce is 128 random bits, new in every write. It identifies the write and makes its ETag
	// unique.
	Nonce string `json:"nonce"`
	// ID is the holder's name for this lease, for example a build number.
	ID string `json:"id,omitempty"`
	// Owner, Host, PID and Reason describe the current or the last holder.
	Owner  string `json:"owner,omitempty"`
	Host   string `json:"host,omitempty"`
	PID    int    `json:"pid,omitempty"`
	Reason string `json:"reason,omitempty"`
	// TTL is the duration of the lease after each write, in milliseconds.
	TTL int64 `json:"ttl_ms"`
	// Since is the time of the acquisition or release by the writer's clock, in UTC. It is only for
	// people.
	Since time.Time `json:"since"`
	// Limit is the limit of the semaphore that this lease is a slot of, or 0 if the lease is not a
	// slot.
	Limit int `json:"limit,omitempty"`
	// Before holds the nonces of the previous writes, newest first.
	Before []string `json:"prev_nonces,omitempty"`
}

// format is the format of every lease object. A new version of Pawl raises its number if earlier
// versions must not change the object.
const (
	format       = "pawl-lock/1"
	formatFamily = "pawl-lock/"
)

// wire is the stored form of a Record.
type wire struct {
	Format string `json:"format"`
	Record
}

const (
	// maxBefore is the maximum number of earlier nonces in a record. Each acquisition, renewal and
	// release adds one.
	maxBefore = 64
	// maxRecord is the maximum size of a lease object in bytes.
	maxRecord = 32 << 10
	maxNonce  = 64 // maximum length of a nonce in bytes
)

// Errors about the content of a lease object.
var (
	// ErrForeign is returned if the object is not a lease of Pawl. Pawl does not change such an
	// object.
	ErrForeign = errors.New("the object is not a lock")
	// ErrNewer is returned if a newer Pawl wrote the lease, in a format unknown to this version.
	ErrNewer = errors.New("the lock was written by a newer version of Pawl: update this one")
)

func (r *Record) encode() []byte {
	b, err := json.Marshal(wire{Format: format, Record: *r})
	if err != nil {
		panic(err)
	}
	return append(b, '\n')
}

// decode parses a lease object. It is strict, so that Pawl never overwrites an object that is not a
// lease.
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

// check returns an error if no version of Pawl writes such a record.
func (r *Record) check() error {
	switch {
	case r.State != Held && r.State != Released:
		return fmt.Errorf("its state is %s", event.Quote(string(r.State)))
	case r.Token < 1 || r.Token >= 1<<62: // a later token must not overflow
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

// next returns a copy of r with a new nonce. The nonce of r becomes the newest of the earlier
// nonces.
func (r *Record) next(nonce string) Record {
	n := *r
	n.Before = slices.Concat([]string{r.Nonce}, r.Before)
	n.Before = n.Before[:min(len(n.Before), maxBefore)]
	n.Nonce = nonce
	return n
}

// first returns the record of a holder for a lock without an object. Its token is the time in
// microseconds, which is higher than every token of an earlier object at the key, because no lock
// is acquired a million times a second.
func first(holder *Record, nonce string, now time.Time) Record {
	n := *holder
	n.State, n.Nonce, n.Since = Held, nonce, now.UTC()
	n.Token = max(now.UnixMicro(), 1)
	return n
}

func (r *Record) acquired(holder *Record, nonce string, now time.Time) Record {
	was := r.next(nonce)
	n := *holder
	n.State, n.Nonce, n.Before, n.Since = Held, nonce, was.Before, now.UTC()
	n.Token = r.Token + 1
	return n
}

func (r *Record) renewed(nonce string) Record { return r.next(nonce) }

func (r *Record) released(nonce string, now time.Time) Record {
	n := r.next(nonce)
	n.State, n.Since = Released, now.UTC()
	return n
}

// forced returns the record after a forced release. The token rises, so that later writes of the
// old holder can be rejected.
func (r *Record) forced(nonce string, now time.Time) Record {
	n := r.released(nonce, now)
	n.Token++
	return n
}
