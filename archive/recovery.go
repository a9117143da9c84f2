package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// recoveryRequests is the number of parallel HEAD requests of a recovering shard.
const recoveryRequests = 16

// listStored lists the stored objects of the shard, and checks that they belong to this archive.
// Objects older than the oldest record in the stream need no check, except for possible voids:
// their records cannot be stored twice.
func (s *shard) listStored(ctx context.Context) ([]StoredRange, error) {
	var all []StoredRange
	var unchecked []listedObject
	oldest := s.trimHorizon(s.retention)
	for info, err := range s.Store.List(ctx, s.Bucket, s.Prefix, "") {
		n, keyErr := ParseKey(s.Prefix, info.Key)
		others := keyErr != nil || n.Shard != s.ID
		if err != nil && !(others && info.Unlistable(err)) {
			return nil, err
		}
		if others {
			continue
		}
		if n.Minute.Before(oldest) && info.Size > s.voidLimit(n.Format) {
			all = append(all, StoredRange{n.Range, n.Minute, n.Format})
			continue
		}
		if unchecked = append(unchecked, listedObject{n, info.Key}); len(unchecked) < recoveryRequests {
			continue
		}
		if all, err = s.checkObjects(ctx, all, unchecked); err != nil {
			return nil, err
		}
		unchecked = unchecked[:0]
	}
	all, err := s.checkObjects(ctx, all, unchecked)
	return mergeAdjacent(all), err
}

func (a *Archive) trimHorizon(retention time.Duration) time.Time {
	return a.Store.StoreTime(a.Now()).Add(-retention - time.Hour)
}

type listedObject struct {
	Name
	key string
}

func (s *shard) checkObjects(ctx context.Context, all []StoredRange, objects []listedObject) ([]StoredRange, error) {
	voids, errs := make([]bool, len(objects)), make([]error, len(objects))
	var requests sync.WaitGroup
	for i, o := range objects {
		one := func() { voids[i], errs[i] = s.checkOwned(ctx, o.key) }
		if s.oneByOne {
			one()
		} else {
			requests.Go(one)
		}
	}
	requests.Wait()
	for i, o := range objects {
		if !voids[i] {
			all = append(all, StoredRange{o.Range, o.Minute, o.Format})
		}
	}
	return all, errors.Join(errs...)
}

// checkOwned returns an error if another program wrote the object.
func (s *shard) checkOwned(ctx context.Context, key string) (void bool, err error) {
	info, err := s.head(ctx, key)
	if err == nil && info.Metadata[metaArchive] != s.claim.ID {
		err = fmt.Errorf("%w: %s does not belong to this archive: move it elsewhere", ErrBroken, s.object(key))
	}
	return voided(info), err
}

func mergeAdjacent(all []StoredRange) (merged []StoredRange) {
	slices.SortFunc(all, func(a, b StoredRange) int { return cmp.Or(a.Start.Compare(b.Start), a.End.Compare(b.End)) })
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

// loadParents returns [ErrParent] if a parent is not finished.
func (s *shard) loadParents(ctx context.Context, all []Shard, id string) error {
	i := slices.IndexFunc(all, func(one Shard) bool { return one.ID == id })
	if i < 0 {
		return fmt.Errorf("%w: the shard %s", ErrNoStream, id)
	}
	s.Shard = all[i]
	s.since, s.fromBeginning = s.claim.Since, s.claim.Origin.IsZero()
	if s.claim.Generation > 1 { // the lost register may have covered records from before Since
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
			return fmt.Errorf("%w: shard %s waits for shard %s", ErrParent, id, parent)
		}
		last = latest(last, latest(p.Arrival, p.SeenEmpty))
	}
	if !last.IsZero() {
		s.since, s.parentsEnd, s.fromBeginning = last, last, true
	}
	return nil
}

// ErrParent is returned for a shard whose parent is not finished.
var ErrParent = errors.New("the shard's parent is not finished")

// Progress returns the register of a shard. known is false if it has none of the claim's
// generation.
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
