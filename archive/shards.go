package archive

import (
	"context"
	"slices"
	"strings"
)

// Shards returns all shards that are to be stored: those of the stream, and those
// that it has forgotten before they were finished. These end, for all that is known,
// before the youngest shard begins.
func (a *Archive) Shards(ctx context.Context, c Claim) ([]Shard, error) {
	all, err := a.Stream.Shards(ctx)
	if err != nil {
		return nil, err
	}
	listed, youngest := all, begin
	for _, s := range all {
		youngest = later(youngest, s.First)
	}
	for p, err := range a.AllProgress(ctx, c) {
		if err != nil {
			return nil, err
		}
		gone := !slices.ContainsFunc(listed, func(s Shard) bool { return s.ID == p.Shard })
		if gone && p.State != Finished {
			all = append(all, Shard{ID: p.Shard, Last: youngest.before(), vanished: true})
		}
	}
	slices.SortFunc(all, func(s, t Shard) int { return strings.Compare(s.ID, t.ID) })
	return all, nil
}
