package archive

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
)

// State is the state of a shard.
type State string

// The states of a shard.
const (
	// Reading means that the shard is being stored.
	Reading State = "reading"
	// Recovering means that the register was lost, and the owner has not yet skipped all stored
	// objects.
	Recovering State = "recovering"
	// Finished means that the shard is closed and completely stored.
	Finished State = "finished"
)

// Progress is the register of a shard: it contains the stored range and the intent. Its transitions
// are functions without a clock and without I/O.
type Progress struct {
	Format string `json:"format"`
	// Nonce is new in every write. A worker recognizes its own write by it.
	Nonce string `json:"nonce"`
	// Generation is the generation of the archive. Workers treat a register of another
	// generation as absent.
	Generation int64 `json:"generation"`
	// Owner is the worker that stores the shard, and Fence is the token of its lease.
	Owner string `json:"owner"`
	Fence int64  `json:"fence"`
	State State  `json:"state"`
	// Start and Committed are the bounds of the stored range. Both are empty if no range is stored.
	Start     Number `json:"start,omitempty"`
	Committed Number `json:"committed,omitempty"`
	// Anchor is the record at which reading must resume. It usually equals Committed, so this
	// record is stored. It is empty if there is no such record yet.
	Anchor Number `json:"anchor,omitempty"`
	// Guessed is set if a recovery has skipped a gap, and Anchor is the end of that gap. Then
	// Anchor may not be the number of a record.
	Guessed bool `json:"guessed,omitempty"`
	// Arrival is the latest arrival of all records up to Committed. The key of the next object
	// cannot have an earlier minute.
	Arrival time.Time `json:"arrival,omitzero"`
	// No record after Committed arrived before the time SeenEmpty. The owner of a quiet shard
	// updates it about once an hour. It is five minutes earlier than the read that proved it,
	// because clocks differ. A zero SeenEmpty means that no such time is known.
	SeenEmpty time.Time `json:"seen_empty,omitzero"`
	// Malformed is the number of malformed records up to Committed that workers have counted in
	// this register.
	Malformed int `json:"malformed,omitempty"`
	// Intent lists the objects that are being stored. A worker that takes over the shard must
	// store exactly these objects.
	Intent *Intent `json:"intent,omitempty"`
}

// Intent lists the objects that are stored next, in order.
type Intent struct {
	Objects []Planned `json:"objects"`
}

// Planned is an object of an intent. It contains the records of one contiguous range of a shard, or
// is a gap for that range.
type Planned struct {
	Key string `json:"key"`
	Range
	// Format is the format in Key. It may differ from the configuration of the current owner.
	Format string `json:"format"`
	// Count is the number of records in the object, and First is the number of the first record.
	// Digest covers the records and not their encoding.
	Count  int    `json:"count,omitempty"`
	First  Number `json:"first,omitempty"`
	Digest string `json:"digest"`
	// Arrival is the latest arrival of all records up to the last one of this object.
	Arrival time.Time `json:"arrival"`
	// Anchor is the record at which reading resumes after a gap.
	Anchor Number `json:"anchor,omitempty"`
	// Malformed lists the numbers of the malformed records in the range. Each of them is stored
	// below _pawl/malformed/.
	Malformed []Number `json:"malformed,omitempty"`
	// Expired is set for a gap if a record in it is known to have expired.
	Expired bool `json:"expired,omitempty"`
}

func (o *Planned) isGap() bool { return o.Format == GapFormat }

const (
	progressFormat = "pawl-archive-shard/1"
	// maxObjects is the maximum number of objects in an intent. It keeps the register below its
	// size limit.
	maxObjects = 16
)

var (
	// ErrStale is returned if another worker has taken over the shard.
	ErrStale = errors.New("another worker has taken over the shard")
	// ErrBroken is returned if the registers or the stored objects are not as Pawl wrote them.
	// An operator must decide how to continue.
	ErrBroken = errors.New("the archive is inconsistent")
)

func decodeProgress(b []byte) (Progress, error) {
	var p Progress
	if err := json.Unmarshal(b, &p); err != nil || p.Format != progressFormat {
		return Progress{}, fmt.Errorf("%w: a register has format %.40q, want %q: a newer version of Pawl may have written it", ErrBroken, p.Format, progressFormat)
	}
	return p, nil
}

// newProgress returns the register of a shard without an owner. After a recovery, the first
// owner must list the stored objects.
func newProgress(generation int64) Progress {
	p := Progress{Format: progressFormat, Generation: generation, State: Reading}
	if generation > 1 {
		p.State = Recovering
	}
	return p
}

// TakeOwnership makes a worker the owner. It returns [ErrStale] if the register has a higher
// generation, or the same generation and an equal or higher fence. A register of an older
// generation counts as absent. If recovering is set and the register has no stored range, the owner
// must list the stored objects first.
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

// Commit records that all objects of the intent are stored.
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

// RecordQuiet commits the intent, and records that no later record arrived before the given time.
func (p Progress) RecordQuiet(before time.Time) Progress {
	p = p.Commit()
	p.SeenEmpty = latest(p.SeenEmpty, before)
	return p
}

// Announce commits the previous intent, and sets the next one. The owner writes the result
// before it uploads any object of the intent.
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

// Abandon commits the first n objects of the intent, and drops the others. The key of object n has
// a void. behind reports that later objects may be stored. Then the owner skips the stored ones as
// in a recovery. Reading resumes at the first record of object n. If that record is missing, the
// missing range becomes a gap.
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

// SkipStored adds a range of already stored objects to the committed range.
func (p Progress) SkipStored(s StoredRange) Progress {
	p = p.Commit().stored(&Planned{Range: s.Range, Arrival: s.Minute, Format: s.Format, Anchor: s.End.after()})
	p.Guessed = s.Format == GapFormat
	return p
}

// StoredRange is a range of adjacent objects in a listing.
type StoredRange struct {
	Range
	Minute time.Time // latest minute of the objects
	Format string    // format of the last object
}

// Finish marks a closed shard as completely stored.
func (p Progress) Finish() Progress {
	p = p.Commit()
	p.State = Finished
	return p
}

// EndRecovery ends a recovery after all stored objects were skipped.
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
