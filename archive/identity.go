package archive

import (
	"context"
	"fmt"
	"time"
)

// checkStream returns an error that names both streams unless id is the claim's stream.
// A stream that is deleted and created again under its name is another one, although
// its ARN and the IDs of its shards are the same.
func (a *Archive) checkStream(c Claim, id StreamID) error {
	if c.Stream == id.ARN && c.StreamCreated.Equal(id.Created) {
		return nil
	}
	return fmt.Errorf("%w: %s names the stream %s created at %s, but the stream is now %s created at %s: give an archive of the new stream another name and another prefix",
		ErrClaimed, a.claimCell(), c.Stream, c.StreamCreated.Format(time.RFC3339Nano), id.ARN, id.Created.Format(time.RFC3339Nano))
}

// identify checks that the stream is still the claim's, and returns its retention.
func (a *Archive) identify(ctx context.Context, c Claim) (retention time.Duration, err error) {
	id, retention, err := a.Stream.Identify(ctx)
	if err != nil {
		return 0, err
	}
	return retention, a.checkStream(c, id)
}

// claimedStream opens shards of the claim's stream only. The check follows the opening:
// if it succeeds, the reader is of that stream, and it stays so, because an iterator of a
// deleted stream is not valid in another.
type claimedStream struct {
	Stream
	archive *Archive
	claim   Claim
}

// Open implements [Stream].
func (s claimedStream) Open(ctx context.Context, shard string, from Position) (Reader, error) {
	r, err := s.Stream.Open(ctx, shard, from)
	if err != nil {
		return nil, err
	}
	if _, err := s.archive.identify(ctx, s.claim); err != nil {
		return nil, err
	}
	return r, nil
}
