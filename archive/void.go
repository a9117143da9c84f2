package archive

import (
	"context"
	"errors"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/cell"
)

// A void is an empty object of its format that blocks a key against late PUTs. The range in its key
// does not count as stored. Voids of earlier versions have no bytes and no metadata.

const metaVoid = "pawl-void"

var errVoid = errors.New("the object's key is voided")

// isVoid sends a HEAD request only if the object is small. It returns ErrNotFound if the object was
// deleted since the listing.
func (a *Archive) isVoid(ctx context.Context, info bucket.Info, format string) (bool, error) {
	if info.Size == 0 || info.Size > a.voidLimit(format) {
		return info.Size == 0, nil
	}
	info, err := a.head(ctx, info.Key)
	return voided(info), err
}

// voided interprets the response to a HEAD or GET request.
func voided(info bucket.Info) bool { return info.Size == 0 || info.Metadata[metaVoid] != "" }

// voidLimit returns the maximum size of a void in bytes. It exceeds the size of an empty file,
// because another encoder version may have written the void. Every object with a record is larger.
func (a *Archive) voidLimit(format string) int64 {
	const slack = 64
	if format == GapFormat {
		return 0 // a gap can be stored without reading, so it is never voided
	}
	if n, ok := a.emptySizes.Load(format); ok {
		return 2*n.(int64) + slack
	}
	empty, err := a.Codec.Encode(format, "shard", nil)
	if err != nil {
		return 64 << 10 // a newer version of Pawl wrote the format
	}
	a.emptySizes.Store(format, int64(len(empty)))
	return a.voidLimit(format)
}

// head retries until the store responds.
func (a *Archive) head(ctx context.Context, key string) (bucket.Info, error) {
	for try := 1; ; try++ {
		info, err := a.Store.Head(ctx, a.object(key))
		if err == nil || !errors.Is(err, bucket.ErrUnavailable) || ctx.Err() != nil {
			return info, err
		}
		if err := a.pace(ctx, try, err); err != nil {
			return info, err
		}
	}
}

// void reports whether the object had landed in the meantime.
func (s *shard) void(ctx context.Context, o *Planned) (stored bool, err error) {
	body, err := s.Codec.Encode(o.Format, s.ID, nil)
	if err != nil {
		return false, err
	}
	signed, err := s.renewSignature(ctx)
	if err != nil {
		return false, err
	}
	outcome, _, err := s.send(ctx, &encodedObject{Planned: *o, body: body, isVoid: true}, signed)
	return outcome == cell.Lost, err
}
