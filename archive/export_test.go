package archive

import "context"

func (a *Archive) RunShard(ctx context.Context, c Claim, all []Shard, id string, token int64) error {
	s, err := a.ownShard(ctx, c, all, id, token, func() {}, func(bool) {})
	if err != nil {
		return err
	}
	if err := a.compareWithListing(ctx, []*shard{s}); err != nil {
		return err
	}
	return s.run(ctx)
}
