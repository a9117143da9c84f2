package archive

import (
	"context"
	"slices"
	"strings"
)

// Shards returns all shards that are to be stored: those of the stream, and those
// that it has forgotten before they were finished. These end, for all that is known,
// before the youngest shard begins.
//
// The registers are read first: a shard may appear in both between the two.
func (a *Archive) Shards(ctx context.Context, c Claim) ([]Shard, error) {
	var unfinished []string
	for p, err := range a.AllProgress(ctx, c) {
		if err != nil {
			return nil, err
		}
		if p.State != Finished {
			unfinished = append(unfinished, p.Shard)
		}
	}
	all, err := a.Stream.Shards(ctx)
	if err != nil {
		return nil, err
	}
	listed, youngest := all, begin
	for _, s := range all {
		youngest = later(youngest, s.First)
	}
	for _, id := range unfinished {
		if !slices.ContainsFunc(listed, func(s Shard) bool { return s.ID == id }) {
			all = append(all, Shard{ID: id, Last: youngest.before(), vanished: true})
		}
	}
	slices.SortFunc(all, func(s, t Shard) int { return strings.Compare(s.ID, t.ID) })
	return all, nil
}
