package archive

import "context"

// Drive stores a shard until it is finished, or until something stops that: an
// error, a new owner, or the end of ctx. The shard is one of those that Shards returned,
// and the token is that of its lease.
func (a *Archive) RunShard(ctx context.Context, c Claim, all []Shard, id string, token int64) error {
	s, err := a.ownShard(ctx, c, all, id, token, func() {})
	if err != nil {
		return err
	}
	if err := a.compareWithListing(ctx, []*shard{s}); err != nil {
		return err
	}
	return s.run(ctx)
}
