package archive

import "context"

// RunShard stores a shard until it is finished, an error occurs, another worker takes over, or
// ctx ends. all is the result of Shards, and token the token of the shard's lease.
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
