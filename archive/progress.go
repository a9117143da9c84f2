package archive

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/internal/format"
)

// State is the state of a shard.
type State string

// The states of a shard.
const (
	Reading State = "reading"
	// Recovering means that the register was lost, and the owner skips the stored objects.
	Recovering State = "recovering"
	Finished   State = "finished"
)

// Progress is the register of a shard. Its transitions use no clock and do no I/O.
type Progress struct {
	Format string `json:"format"`
	Nonce  string `json:"nonce"`
	// Workers treat a register of another generation as absent.
	Generation int64 `json:"generation"`
	// Owner stores the shard. Fence is the token of its lease.
	Owner     string `json:"owner"`
	Fence     int64  `json:"fence"`
	State     State  `json:"state"`
	Start     Number `json:"start,omitempty"`
	Committed Number `json:"committed,omitempty"`
	// Anchor is the record at which reading must resume, usually Committed; empty if there is none.
	Anchor Number `json:"anchor,omitempty"`
	// Guessed is set after a recovery skipped a gap. Anchor then may not be the number of a record.
	Guessed bool `json:"guessed,omitempty"`
	// Arrival is the latest arrival up to Committed. No later key has an earlier minute.
	Arrival time.Time `json:"arrival,omitzero"`
	// No record after Committed arrived before SeenEmpty; zero means unknown. Because clocks
	// differ, it is five minutes before the read that proved it.
	SeenEmpty time.Time `json:"seen_empty,omitzero"`
	// Malformed is the number of malformed records up to Committed.
	Malformed int `json:"malformed,omitempty"`
	// Intent lists the objects that are being stored. The next owner must store exactly these.
	Intent *Intent `json:"intent,omitempty"`

	Unknown jsontext.Value `json:",embed"`
}

// Intent lists the next objects.
type Intent struct {
	Objects []Planned `json:"objects"`
}

// Planned is an object of an intent. It has the records of a range, or is a gap.
type Planned struct {
	Key string `json:"key"`
	Range
	// Format may differ from the owner's configuration.
	Format string `json:"format"`
	// First is the first record. Digest is independent of the encoding.
	Count  int    `json:"count,omitempty"`
	First  Number `json:"first,omitempty"`
	Digest string `json:"digest"`
	// Arrival is the latest arrival of all records of the shard up to End.
	Arrival time.Time `json:"arrival"`
	// Anchor is the record after a gap.
	Anchor Number `json:"anchor,omitempty"`
	// The malformed records are stored below _pawl/malformed/.
	Malformed []Number `json:"malformed,omitempty"`
	Expired   bool     `json:"expired,omitempty"`

	Unknown jsontext.Value `json:",embed"`
}

func (o *Planned) isGap() bool { return o.Format == GapFormat }

const (
	progressFormat = "pawl-archive-shard/1"
	// maxObjects keeps the register below its size limit.
	maxObjects = 16
)

var (
	// ErrStale is returned if another worker has taken over the shard.
	ErrStale = errors.New("another worker has taken over the shard")
	// ErrBroken is returned if registers or objects are not as Pawl wrote them. An operator must
	// repair them.
	ErrBroken = errors.New("the archive is inconsistent")
)

func decodeProgress(b []byte) (Progress, error) {
	var p Progress
	if err := json.Unmarshal(b, &p); err != nil || format.Check(p.Format, progressFormat) != nil {
		return Progress{}, fmt.Errorf("%w: a register has format %.40q, want %q: a newer version of Pawl may have written it", ErrBroken, p.Format, progressFormat)
	}
	return p, nil
}

func newProgress(generation int64) Progress {
	p := Progress{Format: progressFormat, Generation: generation, State: Reading}
	if generation > 1 {
		p.State = Recovering
	}
	return p
}

// TakeOwnership makes a worker the owner. It returns [ErrStale] if the register has a higher
// generation, or the same generation and an equal or higher fence. If recovering is set and the
// register is empty, the owner must list the stored objects first.
func (p Progress) TakeOwnership(owner string, fence, generation int64, recovering bool) (Progress, error) {
	switch {
	case p.Generation > generation:
		return p, fmt.Errorf("%w: its register has generation %d, and this worker has generation %d", ErrStale, p.Generation, generation)
	case p.Generation < generation:
		p = newProgress(generation)
	case p.Fence >= fence:
		return p, fmt.Errorf("%w: %s has token %d, and this worker has token %d", ErrStale, p.Owner, p.Fence, fence)
	}
	if recovering && p.Committed == "" && p.Intent == nil && p.State == Reading {
		p.State = Recovering
	}
	p.Owner, p.Fence = owner, fence
	return p, nil
}

// Commit drops the intent after all of its objects were stored.
func (p Progress) Commit() Progress {
	if p.Intent == nil {
		return p
	}
	for i := range p.Intent.Objects {
		p = p.stored(&p.Intent.Objects[i])
	}
	p.Intent = nil
	return p
}

func (p Progress) stored(o *Planned) Progress {
	if p.Start == "" {
		p.Start = o.Start
	}
	p.Committed, p.Anchor, p.Guessed, p.Arrival = o.End, o.End, false, latest(p.Arrival, o.Arrival)
	p.Malformed += len(o.Malformed)
	if o.isGap() {
		p.Anchor = o.Anchor
	}
	return p
}

// RecordQuiet commits the intent. No unread record arrived before the given time.
func (p Progress) RecordQuiet(before time.Time) Progress {
	p = p.Commit()
	p.SeenEmpty = latest(p.SeenEmpty, before)
	return p
}

// Announce commits the previous intent and sets the next one. The owner must write the result
// before any upload.
func (p Progress) Announce(i Intent) (Progress, error) {
	p = p.Commit()
	at := p.Committed
	if len(i.Objects) == 0 || len(i.Objects) > maxObjects {
		return p, fmt.Errorf("an intent of %d objects: want 1 to %d", len(i.Objects), maxObjects)
	}
	for _, o := range i.Objects {
		if o.Empty() || at != "" && o.Start != at {
			return p, fmt.Errorf("object %s after %s: each object must start where the previous one ends", o.Range, at)
		}
		at = o.End
	}
	p.Intent = &i
	return p, nil
}

// Abandon commits the first n objects of the intent and drops the others, because the key of object
// n has a void. If behind is set, later objects may be stored, and the owner skips them as in a
// recovery.
func (p Progress) Abandon(n int, behind bool) Progress {
	first := p.Intent.Objects[n].First
	if behind {
		p.State = Recovering
	}
	p.Intent = &Intent{p.Intent.Objects[:n]}
	p = p.Commit()
	p.Anchor = first
	return p
}

// SkipStored commits a range of objects that are already stored.
func (p Progress) SkipStored(s StoredRange) Progress {
	p = p.Commit().stored(&Planned{Range: s.Range, Arrival: s.Minute, Format: s.Format, Anchor: s.End.after()})
	p.Guessed = s.Format == GapFormat
	return p
}

// StoredRange is a range of adjacent objects in a listing.
type StoredRange struct {
	Range
	Minute time.Time // latest
	Format string    // of the last object
}

// Finish marks a closed shard as Finished.
func (p Progress) Finish() Progress {
	p = p.Commit()
	p.State = Finished
	return p
}

// EndRecovery changes Recovering to Reading.
func (p Progress) EndRecovery() Progress {
	if p.State == Recovering {
		p.State = Reading
	}
	return p
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
