package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlhq/pawl/bucket"
)

// A ledger can return to an earlier state, because an operator restores a backup, or because a
// standby that lagged takes over. A register can also be lost. In both cases, the next owner of the
// shard would store some records twice. Therefore each owner writes its ownership to the register,
// and then compares the register with a listing. Later owners need not list objects from before
// that write, because after it only this owner stores objects of the shard.

// listMargin is subtracted from the earliest time that the listing must cover.
const listMargin = 5 * time.Minute

func (a *Archive) ownShard(ctx context.Context, c Claim, all []Shard, id string, token int64, saved func()) (*shard, error) {
	s := &shard{Archive: a, claim: c, cell: a.register("shard", id), onStored: saved}
	var err error
	if s.retention, err = a.identify(ctx, c); err != nil {
		return nil, err
	}
	if err := s.loadParents(ctx, all, id); err != nil {
		return nil, err
	}
	return s, s.takeOwnership(ctx, token)
}

// compareWithListing lists the bucket once for all shards that the worker takes over together. It
// sets unknownObject of a shard if the bucket has, or may have, an object of the shard that its
// register does not contain. The worker must not store such a shard.
func (a *Archive) compareWithListing(ctx context.Context, taken []*shard) error {
	waiting, after := map[string]*shard{}, ""
	for _, s := range taken {
		if s.progress.State != Reading {
			continue // the recovery lists all objects anyway
		}
		if from := s.listFrom(); len(waiting) == 0 || from < after {
			after = from
		}
		waiting[s.ID] = s
	}
	if len(waiting) == 0 {
		return nil
	}
	for info, err := range a.Store.List(ctx, a.Bucket, a.Prefix, after) {
		if err != nil && !info.Unlistable(err) {
			return err
		}
		if info.Key > a.Prefix+":" { // the key sorts after the keys of all minutes
			return nil
		}
		n, keyErr := ParseKey(a.Prefix, info.Key)
		s := waiting[n.Shard]
		if keyErr != nil || s == nil || s.accountsFor(n, info.Key) {
			continue
		}
		if s.unknownObject = err; err == nil {
			s.unknownObject = s.unknownObjectError(ctx, info.Key)
		}
		if s.unknownObject != nil {
			delete(waiting, n.Shard)
		}
		if len(waiting) == 0 {
			return nil
		}
	}
	return nil
}

// listFrom returns the key after which the listing starts. The listing then shows every object that
// the register may not contain, because such objects never have an earlier minute than the objects
// in the register.
func (s *shard) listFrom() string {
	at := latest(s.progress.Arrival, s.progress.SeenEmpty)
	if !at.IsZero() {
		at = at.Add(-listMargin)
	}
	return s.listAfter(at)
}

// listAfter returns the key after which a listing starts that shows the objects of the minute of at
// and of later minutes. A zero at means all minutes.
func (a *Archive) listAfter(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return a.Prefix + at.UTC().Format(minuteLayout)
}

func (s *shard) accountsFor(n Name, key string) bool {
	return !s.progress.Committed.less(n.End) || s.progress.Intent != nil &&
		slices.ContainsFunc(s.progress.Intent.Objects, func(o Planned) bool { return o.Key == key })
}

// unknownObjectError returns an error for an object that the register does not contain, unless
// the object is a void or belongs to another program. It does not retry the HEAD request,
// because other shards wait for the result.
func (s *shard) unknownObjectError(ctx context.Context, key string) error {
	info, err := s.Store.Head(ctx, s.object(key))
	switch {
	case errors.Is(err, bucket.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("the register of shard %s does not contain %s, and a HEAD request for it failed: %w", s.ID, s.object(key), err)
	case voided(info) || info.Metadata[metaArchive] != s.claim.ID:
		return nil
	}
	return fmt.Errorf("%w: %s is stored, but the register of shard %s does not contain it: the ledger was restored from a backup, or the register was lost: "+
		"stop all workers, run \"pawl archive recover %s\", and start them again", ErrLostRegisters, s.object(key), s.ID, s.Name)
}
