package archive

import (
	"context"
	"fmt"
	"time"
)

// checkStream compares the creation times, because a stream that is created again has the same ARN
// and shard IDs.
func (a *Archive) checkStream(c Claim, id StreamID) error {
	if c.Stream == id.ARN && c.StreamCreated.Equal(id.Created) {
		return nil
	}
	return fmt.Errorf("%w: %s names the stream %s created at %s, but the stream is now %s created at %s: give an archive of the new stream another name and another prefix",
		ErrClaimed, a.claimCell(), c.Stream, c.StreamCreated.Format(time.RFC3339Nano), id.ARN, id.Created.Format(time.RFC3339Nano))
}

func (a *Archive) identify(ctx context.Context, c Claim) (retention time.Duration, err error) {
	id, retention, err := a.Stream.Identify(ctx)
	if err != nil {
		return 0, err
	}
	return retention, a.checkStream(c, id)
}

// claimedStream opens shards only of the claimed stream. It checks the stream after it opened a
// shard, because an iterator of a deleted stream is invalid in a new one.
type claimedStream struct {
	Stream
	archive *Archive
	claim   Claim
}

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
