package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlhq/pawl/bucket"
)

// A ledger may be restored from a backup, or lose a register. Each owner therefore writes its
// ownership, and then compares the register with a listing, so that it stores no record twice.
// After that write only this owner stores objects.

const listMargin = 5 * time.Minute

func (a *Archive) ownShard(ctx context.Context, c Claim, all []Shard, id string, token int64, stored func(), storing func(bool)) (*shard, error) {
	s := &shard{Archive: a, claim: c, cell: a.register("shard", id), onStored: stored, onStoring: storing}
	var err error
	if s.retention, err = a.identify(ctx, c); err != nil {
		return nil, err
	}
	if err := s.loadParents(ctx, all, id); err != nil {
		return nil, err
	}
	return s, s.takeOwnership(ctx, token)
}

// compareWithListing lists the bucket once for all shards. It sets unknownObject of a shard whose
// register may lack a stored object.
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
		if info.Key > a.Prefix+":" { // sorts after the keys of all minutes
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

// Objects that are missing in the register never have an earlier minute than those in it.
func (s *shard) listFrom() string {
	at := latest(s.progress.Arrival, s.progress.SeenEmpty)
	if !at.IsZero() {
		at = at.Add(-listMargin)
	}
	return s.listAfter(at)
}

// A zero at means all minutes.
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

// unknownObjectError ignores voids and objects of other programs. It does not retry, because other
// shards wait for the result.
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
