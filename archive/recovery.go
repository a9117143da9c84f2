package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// stored lists all that is stored of the shard, and checks whose it is.
func (s *shard) stored(ctx context.Context) ([]Stored, error) {
	var all []Stored
	for info, err := range s.Store.List(ctx, s.Bucket, s.Prefix, "") {
		if err != nil {
			return nil, err
		}
		n, err := ParseKey(s.Prefix, info.Key)
		if err != nil || n.Shard != s.ID {
			continue
		}
		void, err := s.ours(ctx, info.Key)
		if err != nil {
			return nil, err
		}
		if !void {
			all = append(all, Stored{n.Range, n.Minute, n.Format})
		}
	}
	return merge(all), nil
}

// ours checks that this archive wrote an object, and reports whether it is a void.
func (s *shard) ours(ctx context.Context, key string) (void bool, err error) {
	info, err := s.head(ctx, key)
	if err == nil && info.Metadata[metaArchive] != s.claim.ID {
		err = fmt.Errorf("%w: %s is not this archive's: move it away", ErrBroken, s.object(key))
	}
	return voided(info), err
}

// merge joins what has no hole between, and orders it.
func merge(all []Stored) (merged []Stored) {
	slices.SortFunc(all, func(a, b Stored) int { return cmp.Or(a.Start.Compare(b.Start), a.End.Compare(b.End)) })
	for _, s := range all {
		last := len(merged) - 1
		if last < 0 || merged[last].End.less(s.Start) {
			merged = append(merged, s)
			continue
		}
		m := &merged[last]
		m.Minute = latest(m.Minute, s.Minute)
		if m.End.less(s.End) {
			m.End, m.Format = s.End, s.Format
		}
	}
	return merged
}

// family finds a shard's place among the others, and whether it may begin.
func (s *shard) family(ctx context.Context, all []Shard, id string) error {
	i := slices.IndexFunc(all, func(one Shard) bool { return one.ID == id })
	if i < 0 {
		return fmt.Errorf("%w: the shard %s", ErrNoStream, id)
	}
	s.Shard = all[i]
	s.since, s.fromBegin = s.claim.Since, s.claim.Origin.IsZero()
	if s.claim.Generation > 1 { // a lost register may have covered all that could be read at the claim
		s.since = latest(s.since.Add(-s.retention), s.claim.Origin)
	}
	var last time.Time
	for _, parent := range s.Parents {
		p, known, err := s.Archive.Progress(ctx, s.claim, parent)
		if err != nil {
			return err
		}
		listed := slices.ContainsFunc(all, func(one Shard) bool { return one.ID == parent })
		if (listed || known) && p.State != Finished {
			return fmt.Errorf("%w: %s waits for %s", ErrParent, id, parent)
		}
		last = latest(last, p.Arrival)
	}
	if !last.IsZero() {
		s.since, s.fromBegin = last, true
	}
	return nil
}

// ErrParent: a shard waits for another to be finished, of which it is a part.
var ErrParent = errors.New("the shard's parent is not finished")

// Progress returns the register of a shard. It is not known if there is none of
// this generation.
func (a *Archive) Progress(ctx context.Context, c Claim, shard string) (p Progress, known bool, err error) {
	v, err := a.read(ctx, a.register("shard", shard))
	if err != nil || v.Version == "" {
		return Progress{}, false, err
	}
	if p, err = decodeProgress(v.Body); err != nil || p.Generation != c.Generation {
		return Progress{}, false, err
	}
	return p, true, nil
}
