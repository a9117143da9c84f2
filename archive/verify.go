package archive

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl/bucket"
)

// Finding is a fault of an archive, or a note.
type Finding struct {
	Kind  string   `json:"kind"`
	Shard string   `json:"shard,omitempty"`
	Range string   `json:"range,omitempty"`
	Keys  []string `json:"keys,omitempty"`
	What  string   `json:"what"`
}

// Kinds of findings.
const (
	Missing    = "missing"    // a range without an object, or a malformed record that is not stored
	Overlap    = "overlap"    // a range of two objects
	Foreign    = "foreign"    // an object of another program
	Damaged    = "damaged"    // an object that does not match its digest or key
	Unreadable = "unreadable" // an object that the store cannot return or list
)

// Kinds of notes.
const (
	Pending = "pending" // an announced object that is not stored yet
	Expired = "expired" // a range in which a record expired before it was stored
)

// Report is the result of Verify.
type Report struct {
	From            time.Time `json:"from,omitzero"` // zero means no limit
	To              time.Time `json:"to,omitzero"`
	Objects         int       `json:"objects"`
	Gaps            int       `json:"gaps"`
	Expired         int       `json:"expired"`          // gaps that have lost a record
	PossiblyExpired int       `json:"possibly_expired"` // gaps that may have lost a record
	Voids           int       `json:"voids"`
	Malformed       int       `json:"malformed"` // records below _pawl/malformed/
	Shards          int       `json:"shards"`
	Records         int       `json:"entries,omitempty"` // only if Deep
	Findings        []Finding `json:"findings"`
	Notes           []Finding `json:"notes"`
}

// VerifyOptions are the options of Verify.
type VerifyOptions struct {
	Deep bool
	// From and To limit Verify to objects whose minute ends after From and begins before To. Zero
	// means no limit.
	From, To time.Time
	// OnKey is called with the key of each object. Optional.
	OnKey func(key string)
}

func (o *VerifyOptions) before(at time.Time) bool { return o.To.IsZero() || minute(at).Before(o.To) }

func (o *VerifyOptions) after(at time.Time) bool { return !minute(at).Before(minute(o.From)) }

type coveredRange struct {
	Range
	first, last string
}

type verifier struct {
	*Archive
	VerifyOptions
	claim     Claim
	report    *Report
	shards    map[string][]coveredRange
	known     map[string]Progress        // read before the listing
	pending   map[string]announcedObject // by key; not listed yet
	malformed map[string][]Number        // by shard
	counted   []malformedCount
}

// Verify checks that the objects of the archive cover every number of every shard exactly once. It
// lists the objects and reads the gap notes.
//
// The objects of a window are contiguous, because the minutes of a shard rise with its numbers.
// Verify skips the range before the first object. It checks the range after the last object only if
// the minute of the shard's newest object begins before To.
func (a *Archive) Verify(ctx context.Context, o VerifyOptions) (*Report, error) {
	c, err := a.ExistingClaim(ctx)
	if err == nil {
		err = a.checkMarker(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	v := &verifier{
		Archive: a, VerifyOptions: o, claim: c,
		report: &Report{From: o.From, To: o.To, Findings: []Finding{}, Notes: []Finding{}},
		shards: map[string][]coveredRange{}, known: map[string]Progress{}, pending: map[string]announcedObject{},
		malformed: map[string][]Number{},
	}
	// Read the registers before the listing, because workers may commit more objects meanwhile.
	for p, err := range v.AllProgress(ctx, v.claim) {
		if err != nil {
			return nil, err
		}
		v.known[p.Shard] = p.Progress
		v.addIntent(p)
	}
	for _, step := range []func(context.Context) error{v.list, v.checkPending, v.checkMalformed} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	v.checkCoverage()
	return v.report, nil
}

func (v *verifier) list(ctx context.Context) error {
	startAfter, end := "", ""
	if !v.From.IsZero() {
		startAfter = v.Prefix + minute(v.From).Format(minuteLayout)
	}
	if !v.To.IsZero() {
		end = v.Prefix + minute(v.To.Add(time.Minute-1)).Format(minuteLayout)
	}
	for info, err := range v.Store.List(ctx, v.Bucket, v.Prefix, startAfter) {
		switch {
		case err != nil && !info.Unlistable(err):
			return err
		case strings.HasPrefix(info.Key, v.Prefix+reserved):
			continue
		case !v.To.IsZero() && info.Key >= end:
			return nil
		}
		if v.OnKey != nil {
			v.OnKey(info.Key)
		}
		if err == nil {
			err = v.checkListed(ctx, info)
		} else {
			n, _ := ParseKey(v.Prefix, info.Key)
			delete(v.pending, info.Key)
			err = v.unreadable(ctx, n.Shard, info.Key, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) checkListed(ctx context.Context, info bucket.Info) error {
	n, err := ParseKey(v.Prefix, info.Key)
	if err != nil {
		v.addFinding(Finding{Kind: Foreign, Keys: []string{info.Key}, What: "the key does not belong to this archive: move the object elsewhere"})
		return nil
	}
	void, err := v.isVoid(ctx, info, n.Format)
	switch {
	case errors.Is(err, bucket.ErrNotFound):
		return nil // deleted since the listing
	case err != nil:
		return v.unreadable(ctx, n.Shard, info.Key, err)
	case void:
		v.report.Voids++
		return nil
	}
	v.report.Objects++
	delete(v.pending, info.Key)
	v.addCovered(n, info.Key)
	if v.Deep || n.Format == GapFormat {
		return v.checkContent(ctx, n, info.Key)
	}
	return nil
}

func (v *verifier) addFinding(f Finding) { v.report.Findings = append(v.report.Findings, f) }

func (v *verifier) addCovered(n Name, key string) {
	all := v.shards[n.Shard]
	i, _ := slices.BinarySearchFunc(all, n.Start, func(s coveredRange, n Number) int { return s.End.Compare(n) })
	s := coveredRange{n.Range, key, key}
	j := i
	for ; j < len(all) && !s.End.less(all[j].Start); j++ {
		other := all[j]
		if other.Overlaps(s.Range) {
			both := Range{later(other.Start, s.Start), earlier(other.End, s.End)}
			v.addFinding(Finding{Kind: Overlap, Shard: n.Shard, Range: both.String(), Keys: []string{key, other.first, other.last},
				What: "this range is stored twice: in the first object, and in the other objects or objects between those"})
		}
		if other.Start.less(s.Start) {
			s.Start, s.first = other.Start, other.first
		}
		if s.End.less(other.End) {
			s.End, s.last = other.End, other.last
		}
	}
	v.shards[n.Shard] = slices.Replace(all, i, j, s)
}

func (v *verifier) checkCoverage() {
	for shard := range v.known {
		if _, ok := v.shards[shard]; !ok {
			v.shards[shard] = nil
		}
	}
	v.report.Shards = len(v.shards)
	for _, shard := range slices.Sorted(maps.Keys(v.shards)) {
		v.findHoles(shard, v.shards[shard])
	}
}

// In a window, findHoles uses the register only if its newest object must be in the window.
func (v *verifier) findHoles(shard string, all []coveredRange) {
	p, known := v.known[shard]
	at, key := p.Start, ""
	switch {
	case v.From.IsZero() && at == "" && v.claim.Origin.IsZero():
		at = begin
	case v.From.IsZero():
	case len(all) == 0 && known && !p.Arrival.IsZero() && v.after(p.Arrival):
		at = p.Committed.before() // the newest object is in the window
	default:
		at = ""
	}
	if v.before(p.Arrival) {
		all = append(all, coveredRange{Range: Range{Start: p.Committed}})
	}
	for _, s := range all {
		end := s.Start
		if known && p.Committed.less(end) {
			end = p.Committed
		}
		if at != "" && at.less(end) {
			f := Finding{Kind: Missing, Shard: shard, Range: Range{at, end}.String(), What: "no object covers this range, which was stored; it lies between these objects"}
			for _, k := range []string{key, s.first} {
				if k != "" {
					f.Keys = append(f.Keys, k)
				}
			}
			v.addFinding(f)
		}
		at, key = later(at, s.End), s.last
	}
}

// ShardProgress is the register of a shard.
type ShardProgress struct {
	Shard string
	Progress
}

// AllProgress yields the registers of the claim's generation.
func (a *Archive) AllProgress(ctx context.Context, c Claim) iter.Seq2[ShardProgress, error] {
	prefix := "archive/" + a.Name + "/shard/"
	return func(yield func(ShardProgress, error) bool) {
		for r, err := range a.Registers.ListRegisters(ctx, prefix) {
			var p Progress
			if err == nil {
				p, err = decodeProgress(r.Value)
			}
			if err == nil && p.Generation != c.Generation {
				continue
			}
			if !yield(ShardProgress{strings.TrimPrefix(r.Name, prefix), p}, err) || err != nil {
				return
			}
		}
	}
}
