package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlhq/pawl/bucket"
)

// A ledger can go back in time: a replica takes over that lags behind, or a backup is
// restored. A register can be lost. The next owner of a shard would then store records
// that are stored. So after its ownership write each owner compares the register with a
// listing. Later owners need no other listing of that time, because from the ownership
// write on only the register's owner stores objects of the shard.

// listMargin is how much earlier than the register demands the listing begins.
const listMargin = 5 * time.Minute

// take makes this worker the owner of a shard.
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

// compare lists the bucket once for shards that were taken over together. A shard of
// which an object is stored that its register does not know, or perhaps does not know,
// must not be stored further: compare sets its field unknown.
func (a *Archive) compareWithListing(ctx context.Context, taken []*shard) error {
	waiting, after := map[string]*shard{}, ""
	for _, s := range taken {
		if s.progress.State != Reading {
			continue // a recovery lists everything
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
		if info.Key > a.Prefix+":" { // behind all minutes
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

// listFrom returns the key behind which a listing shows all objects that the register may
// not know. No object behind those of the register is in an earlier minute.
func (s *shard) listFrom() string {
	at := latest(s.progress.Arrival, s.progress.SeenEmpty)
	if !at.IsZero() {
		at = at.Add(-listMargin)
	}
	return s.listAfter(at)
}

// listAfter returns the key behind which a listing shows the objects of a minute and of
// all later ones. Zero: of all minutes.
func (a *Archive) listAfter(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return a.Prefix + at.UTC().Format(minuteLayout)
}

// knows reports whether the register accounts for an object.
func (s *shard) accountsFor(n Name, key string) bool {
	return !s.progress.Committed.less(n.End) || s.progress.Intent != nil &&
		slices.ContainsFunc(s.progress.Intent.Objects, func(o Planned) bool { return o.Key == key })
}

// refuse returns the error for an object that the register does not know, unless the
// object is a void or another program's. It sends one HEAD request: other shards wait for
// the answer.
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
