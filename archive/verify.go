package archive

import (
	"context"
	"errors"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/pawlhq/pawl/bucket"
)

// Finding is something that is wrong with an archive.
type Finding struct {
	Kind  string   `json:"kind"` // missing, overlap, foreign, damaged
	Shard string   `json:"shard,omitempty"`
	Range string   `json:"range,omitempty"`
	Keys  []string `json:"keys,omitempty"`
	What  string   `json:"what"`
}

// The kinds of findings.
const (
	Missing = "missing" // a range that no object covers
	Overlap = "overlap" // a range that two objects cover
	Foreign = "foreign" // an object that is not the archive's
	Damaged = "damaged" // an object whose content is not what it says
)

// Report is what Verify has found.
type Report struct {
	Objects  int       `json:"objects"`
	Gaps     int       `json:"gaps"`              // ranges that were lost before they could be stored
	Voids    int       `json:"voids"`             // keys under which nothing can be stored any more
	Adopted  int       `json:"adopted,omitempty"` // objects of another program
	Shards   int       `json:"shards"`
	Entries  int       `json:"entries,omitempty"` // read, if deep
	Findings []Finding `json:"findings"`
}

// stretch is objects without a hole between them.
type stretch struct {
	Range
	first, last string // keys
}

// verifier goes through an archive's keys.
type verifier struct {
	*Archive
	claim  Claim
	report *Report
	shards map[string][]stretch
	known  map[string]Progress // by shard, from before the listing
	prints map[Number]string   // of entries that another program has stored, if deep
}

// Verify proves that the archive covers every number of every shard exactly once,
// or names what is wrong. It lists all objects; if deep it also reads them. It is
// told of each.
func (a *Archive) Verify(ctx context.Context, deep bool, told func(key string)) (*Report, error) {
	c, err := a.Claimed(ctx)
	if err == nil {
		err = a.checkMarker(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	v := &verifier{a, c, &Report{Findings: []Finding{}}, map[string][]stretch{}, map[string]Progress{}, map[Number]string{}}
	// Workers go on meanwhile: what they commit from here on may be missing in the listing.
	for p, err := range v.AllProgress(ctx, v.claim) {
		if err != nil {
			return nil, err
		}
		v.known[p.Shard] = p.Progress
	}
	for info, err := range a.Store.List(ctx, a.Bucket, a.Prefix, "") {
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(info.Key, a.Prefix+reserved) {
			continue
		}
		if told != nil {
			told(info.Key)
		}
		if err := v.see(ctx, info, deep); err != nil {
			return nil, err
		}
	}
	v.close()
	return v.report, nil
}

// see takes the next key of the listing.
func (v *verifier) see(ctx context.Context, info bucket.Info, deep bool) error {
	n, err := ParseKey(v.Prefix, info.Key)
	at, another := adoptedMinute(v.Prefix, info.Key)
	switch {
	case another && v.claim.Adopted != nil:
		return v.seeAdopted(ctx, at, info.Key, deep)
	case err != nil:
		v.find(Finding{Kind: Foreign, Keys: []string{info.Key}, What: "it has no key of this archive: move it away"})
		return nil
	}
	void, err := v.isVoid(ctx, info, n.Format)
	switch {
	case errors.Is(err, bucket.ErrNotFound):
		return nil // deleted since the listing
	case err != nil:
		return err
	case void:
		v.report.Voids++
		return nil
	case n.Format == GapFormat:
		v.report.Gaps++
	}
	v.report.Objects++
	v.cover(n, info.Key)
	if deep {
		return v.open(ctx, n, info.Key)
	}
	return nil
}

func (v *verifier) find(f Finding) { v.report.Findings = append(v.report.Findings, f) }

// cover adds what an object covers.
func (v *verifier) cover(n Name, key string) {
	all := v.shards[n.Shard]
	i, _ := slices.BinarySearchFunc(all, n.Start, func(s stretch, n Number) int { return s.End.Compare(n) })
	s := stretch{n.Range, key, key}
	j := i
	for ; j < len(all) && !s.End.less(all[j].Start); j++ {
		other := all[j]
		if other.Overlaps(s.Range) {
			both := Range{later(other.Start, s.Start), earlier(other.End, s.End)}
			v.find(Finding{Kind: Overlap, Shard: n.Shard, Range: both.String(), Keys: []string{key, other.first, other.last},
				What: "the first object covers what is covered already, by the others or between them"})
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

// close looks for holes, and compares with the registers.
func (v *verifier) close() {
	for shard := range v.known {
		if _, ok := v.shards[shard]; !ok {
			v.shards[shard] = nil
		}
	}
	v.report.Shards = len(v.shards)
	for _, shard := range slices.Sorted(maps.Keys(v.shards)) {
		v.holes(shard, v.shards[shard])
	}
}

// holes finds what no object covers, up to where the shard was committed when the
// listing began.
func (v *verifier) holes(shard string, all []stretch) {
	p, known := v.known[shard]
	at, key := p.Start, ""
	if at == "" && v.claim.Origin.IsZero() {
		at = begin
	}
	for _, s := range append(all, stretch{Range: Range{Start: p.Committed}}) {
		end := s.Start
		if known && p.Committed.less(end) {
			end = p.Committed
		}
		if at != "" && at.less(end) {
			f := Finding{Kind: Missing, Shard: shard, Range: Range{at, end}.String(), What: "no object covers this range, which was stored: it lies between these"}
			for _, k := range []string{key, s.first} {
				if k != "" {
					f.Keys = append(f.Keys, k)
				}
			}
			v.find(f)
		}
		at, key = later(at, s.End), s.last
	}
}

// open reads an object, and compares it with what its metadata and its key say.
func (v *verifier) open(ctx context.Context, n Name, key string) error {
	info, r, err := v.Store.Get(ctx, v.object(key))
	if err != nil {
		return err
	}
	defer r.Close()
	body, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if info.Metadata[metaArchive] != v.claim.ID {
		v.find(Finding{Kind: Foreign, Shard: n.Shard, Keys: []string{key}, What: "its metadata does not name this archive"})
		return nil
	}
	o := Planned{Range: n.Range, Format: n.Format}
	if o.kept() {
		v.checkKept(n, key, body)
		return nil
	}
	var entries []Entry
	if !o.gap() {
		entries, err = v.Codec.Decode(n.Format, n.Shard, body)
	}
	v.report.Entries += len(entries)
	for i := range entries {
		if was, twice := v.prints[entries[i].Number]; twice && was == fingerprint(&entries[i]) {
			v.find(Finding{Kind: Overlap, Shard: n.Shard, Keys: []string{key}, What: "another program has stored the entry " + string(entries[i].Number) + ", too"})
		}
	}
	outside := slices.ContainsFunc(entries, func(e Entry) bool { return !n.Contains(e.Number) })
	if err != nil || outside || digestOf(n.Shard, &o, entries) != info.Metadata[metaDigest] {
		v.find(Finding{Kind: Damaged, Shard: n.Shard, Range: n.Range.String(), Keys: []string{key}, What: "its content is not what was stored"})
	}
	return nil
}

// ShardProgress is the progress of one shard.
type ShardProgress struct {
	Shard string
	Progress
}

// AllProgress yields the registers of all shards, of the claim's generation.
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
