package lock

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/format"
)

// State is the state of a lock.
type State string

// The states of a lock.
const (
	Held     State = "held"
	Released State = "released"
)

// Record is the content of a lease object.
type Record struct {
	State State `json:"state"`
	// Token is the fencing token. It rises with every acquisition and forced release.
	Token int64 `json:"token"`
	// Nonce is 128 random bits. It makes the ETag of every write unique.
	Nonce string `json:"nonce"`
	ID    string `json:"id,omitzero"`
	// Owner, Host, PID and Reason describe the current or last holder.
	Owner  string `json:"owner,omitzero"`
	Host   string `json:"host,omitzero"`
	PID    int    `json:"pid,omitzero"`
	Reason string `json:"reason,omitzero"`
	// TTL is in milliseconds.
	TTL int64 `json:"ttl_ms"`
	// Since is the time of the acquisition or release by the writer's clock, for people only.
	Since time.Time `json:"since"`
	// Limit is the limit of the slot's semaphore, or 0.
	Limit int `json:"limit,omitzero"`
	// Before holds the nonces of the previous writes, newest first.
	Before []string `json:"prev_nonces,omitempty"`

	unknown jsontext.Value // members of a higher minor version
}

// Format is the version of the lease that this version of Pawl writes. Versions of Pawl with another
// number before the dot must not change the object.
const (
	Format       = "pawl-lock/1"
	formatFamily = "pawl-lock/"
)

type wire struct {
	Format string `json:"format"`
	Record
	Unknown jsontext.Value `json:",embed"`
}

const (
	// maxBefore is the maximum number of earlier nonces. Each write adds one.
	maxBefore = 64
	// maxRecord is in bytes.
	maxRecord = 32 << 10
	maxNonce  = 64 // in bytes
)

var (
	// ErrForeign is returned if the object is not a lease. Pawl does not change it.
	ErrForeign = errors.New("the object is not a lock")
	// ErrNewer is returned if a newer Pawl wrote the lease in an unknown format.
	ErrNewer = errors.New("the lock was written by a newer version of Pawl: update this one")
)

func (r *Record) encode() []byte {
	b, err := json.Marshal(wire{Format, *r, r.unknown}, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic(err)
	}
	return append(b, '\n')
}

// decode is strict, so that Pawl never overwrites an object that is not a lease.
func decode(b []byte) (Record, error) {
	var head struct {
		Format string `json:"format"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return Record{}, fmt.Errorf("%w: its content is not the JSON of a lease", ErrForeign)
	}
	switch {
	case !strings.HasPrefix(head.Format, formatFamily):
		return Record{}, fmt.Errorf("%w: its format is not %q", ErrForeign, Format)
	case format.Check(head.Format, Format) != nil:
		return Record{}, fmt.Errorf("%w: its format is %s", ErrNewer, event.Quote(head.Format))
	}
	var w wire
	if err := json.Unmarshal(b, &w); err != nil {
		return Record{}, fmt.Errorf("%w: its fields do not match a lease", ErrForeign)
	}
	w.unknown = w.Unknown
	if err := w.check(); err != nil {
		return Record{}, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	return w.Record, nil
}

func (r *Record) check() error {
	switch {
	case r.State != Held && r.State != Released:
		return fmt.Errorf("its state is %s", event.Quote(string(r.State)))
	case r.Token < 1 || r.Token >= 1<<62: // later tokens must not overflow
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

func (r *Record) next(nonce string) Record {
	n := *r
	n.Before = slices.Concat([]string{r.Nonce}, r.Before)
	n.Before = n.Before[:min(len(n.Before), maxBefore)]
	n.Nonce = nonce
	return n
}

// first returns the first record of a lock. Its token is the time in microseconds. It exceeds all
// earlier tokens, because no lock is acquired a million times a second.
func first(holder *Record, nonce string, now time.Time) Record {
	n := *holder
	n.State, n.Nonce, n.Since = Held, nonce, now.UTC()
	n.Token = max(now.UnixMicro(), 1)
	return n
}

func (r *Record) acquired(holder *Record, nonce string, now time.Time) Record {
	was := r.next(nonce)
	n := *holder
	n.unknown = r.unknown
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

// forced raises the token, so that later writes of the old holder can be rejected.
func (r *Record) forced(nonce string, now time.Time) Record {
	n := r.released(nonce, now)
	n.Token++
	return n
}
