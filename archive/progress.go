package archive

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
)

// State is how far a shard is.
type State string

// The states of a shard.
const (
	// Reading: it is being stored.
	Reading State = "reading"
	// Recovering: its register was lost, and what is stored already has not been
	// passed yet.
	Recovering State = "recovering"
	// Finished: it is closed, and all of it is stored.
	Finished State = "finished"
)

// Progress is the register of one shard: what is stored of it, and what is about
// to be. Its transitions are functions without a clock and without I/O.
type Progress struct {
	Format string `json:"format"`
	// Nonce is fresh in every write: it tells whose write it was.
	Nonce string `json:"nonce"`
	// Generation is the archive's. A register of another one counts as absent.
	Generation int64 `json:"generation"`
	// Owner is the worker that stores the shard, under the token of its lease.
	Owner string `json:"owner"`
	Fence int64  `json:"fence"`
	State State  `json:"state"`
	// Start is where the shard's objects begin, and Committed where they end.
	// Empty: nothing is stored.
	Start     Number `json:"start,omitempty"`
	Committed Number `json:"committed,omitempty"`
	// Anchor is the entry from which reading goes on, which must be there. It is
	// stored if it is Committed. Empty: there is none yet.
	Anchor Number `json:"anchor,omitempty"`
	// Guessed reports that Anchor is behind a gap that a recovery has passed: there may be
	// no such entry.
	Guessed bool `json:"guessed,omitempty"`
	// Arrival is the latest arrival of all entries up to Committed. Its minute is
	// the least that the next object can have.
	Arrival time.Time `json:"arrival,omitzero"`
	// SeenEmpty is a moment before which no record behind Committed arrived. An owner
	// of a quiet shard writes it about once an hour. It is five minutes older than the
	// read that proved it, because clocks differ. Zero: unknown.
	SeenEmpty time.Time `json:"seen_empty,omitzero"`
	// Malformed is the number of malformed entries up to Committed that this register has
	// counted.
	Malformed int `json:"malformed,omitempty"`
	// Intent is what is being stored. It decides: whoever takes the shard over
	// stores these objects, and no others.
	Intent *Intent `json:"intent,omitempty"`
}

// Intent is the objects that are stored next, one after the other.
type Intent struct {
	Objects []Planned `json:"objects"`
}

// Planned is an object that is to be stored. It holds one contiguous run of a
// shard's entries, or stands for entries that are not there.
type Planned struct {
	Key string `json:"key"`
	Range
	// Format and encoding are those of the key, whatever the owner is configured
	// for now.
	Format string `json:"format"`
	// Count is how many entries it holds, and First is the first of them. Digest is
	// of their content, and of no encoding.
	Count  int    `json:"count,omitempty"`
	First  Number `json:"first,omitempty"`
	Digest string `json:"digest"`
	// Arrival is the latest of all entries up to this object's last.
	Arrival time.Time `json:"arrival"`
	// Anchor is where reading goes on behind a gap.
	Anchor Number `json:"anchor,omitempty"`
	// Malformed are the numbers of the malformed entries in the range, each of which is
	// kept below _pawl/malformed/.
	Malformed []Number `json:"malformed,omitempty"`
	// Expired reports, of a gap, that a record in it is known to have expired.
	Expired bool `json:"expired,omitempty"`
}

func (o *Planned) isGap() bool { return o.Format == GapFormat }

const (
	progressFormat = "pawl-archive-shard/1"
	// maxObjects keeps a register below its limit.
	maxObjects = 16
)

var (
	// ErrStale: another worker has taken over the shard.
	ErrStale = errors.New("another worker has taken over the shard")
	// ErrBroken: what is stored, or a register, is not as this archive left it. A
	// person has to look.
	ErrBroken = errors.New("the archive is inconsistent")
)

func decodeProgress(b []byte) (Progress, error) {
	var p Progress
	if err := json.Unmarshal(b, &p); err != nil || p.Format != progressFormat {
		return Progress{}, fmt.Errorf("%w: a register has format %.40q, want %q: a newer version of Pawl may have written it", ErrBroken, p.Format, progressFormat)
	}
	return p, nil
}

// newProgress returns the register of a shard that has no owner yet. After a recovery
// the first owner must find what is stored.
func newProgress(generation int64) Progress {
	p := Progress{Format: progressFormat, Generation: generation, State: Reading}
	if generation > 1 {
		p.State = Recovering
	}
	return p
}

// Take makes a worker the owner. An older lease than the register's is refused. A
// shard without a register of this generation begins anew. If recovering, and nothing is
// known to be stored, the owner must find what is.
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

// Commit says that all objects of the intent are stored.
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

// Quiet commits the intent, and records that no record behind it arrived before a
// moment.
func (p Progress) RecordQuiet(before time.Time) Progress {
	p = p.Commit()
	p.SeenEmpty = latest(p.SeenEmpty, before)
	return p
}

// Announce commits the intent, and says what is stored next. It is written before
// any of that is sent.
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

// Abandon commits the first n objects of the intent, and gives up the others. The
// key of the first of these has been voided. If some behind it are stored, they are
// passed like those of a recovery. The first entry was there when it was announced:
// what is missing now becomes a gap.
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

// Step passes what was found to be stored.
func (p Progress) SkipStored(s StoredRange) Progress {
	p = p.Commit().stored(&Planned{Range: s.Range, Arrival: s.Minute, Format: s.Format, Anchor: s.End.after()})
	p.Guessed = s.Format == GapFormat
	return p
}

// Stored is what a listing shows to be stored: objects without a hole between them.
type StoredRange struct {
	Range
	Minute time.Time // the latest of theirs
	Format string    // of the last one
}

// Finish ends a shard that is closed.
func (p Progress) Finish() Progress {
	p = p.Commit()
	p.State = Finished
	return p
}

// Reads ends a recovery: nothing that is stored is left to be passed.
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
