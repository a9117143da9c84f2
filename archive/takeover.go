package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlhq/pawl/bucket"
)

// A ledger can go back in time: an operator restores a backup, or a standby that lagged takes
// over. A register can also be lost. The next owner of the shard would then store some records
// twice. After its ownership write, each owner therefore compares the register with a listing.
// Later owners need no listing of that time, because after the ownership write only this owner
// stores objects of the shard.

// listMargin is subtracted from the time where the listing could start.
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

// compareWithListing lists the bucket once for all shards that were taken over together. It
// sets unknownObject of a shard if the bucket has, or may have, an object of the shard that its
// register does not contain. Such a shard must not be stored.
func (a *Archive) compareWithListing(ctx context.Context, taken []*shard) error {
	waiting, after := map[string]*shard{}, ""
	for _, s := range taken {
		if s.progress.State != Reading {
			continue // a recovering shard lists all objects anyway
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
		if info.Key > a.Prefix+":" { // the key is after all minutes
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

// listFrom returns the key where a listing starts that shows every object which the register
// may not contain. Objects after those of the register are never in an earlier minute.
func (s *shard) listFrom() string {
	at := latest(s.progress.Arrival, s.progress.SeenEmpty)
	if !at.IsZero() {
		at = at.Add(-listMargin)
	}
	return s.listAfter(at)
}

// listAfter returns the key where a listing starts that shows the objects of at's minute and
// later. The zero time means all minutes.
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
