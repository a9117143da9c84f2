package s3bucket

import (
	"context"
	"fmt"
	"iter"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
)

// List implements [bucket.Store].
func (s *Store) List(ctx context.Context, name, prefix, startAfter string) iter.Seq2[bucket.Info, error] {
	return func(yield func(bucket.Info, error) bool) {
		where := event.Quote("s3://" + name + "/" + prefix)
		var token *string
		for {
			page, err := s.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{
				Bucket:            &name,
				Prefix:            optional(prefix),
				StartAfter:        optional(startAfter),
				ContinuationToken: token,
				// XML cannot hold every byte that a key can.
				EncodingType: types.EncodingTypeUrl,
			}, mustList)
			if err != nil {
				yield(bucket.Info{}, read("listing", event.Object{Bucket: name, Key: prefix}, err))
				return
			}
			for _, o := range page.Contents {
				info, err := listed(o, page.EncodingType)
				if err != nil {
					yield(bucket.Info{}, fmt.Errorf("listing %s: %w: %w", where, bucket.ErrUnavailable, err))
					return
				}
				if !yield(info, nil) {
					return
				}
			}
			if !aws.ToBool(page.IsTruncated) {
				return
			}
			if token = page.NextContinuationToken; aws.ToString(token) == "" {
				yield(bucket.Info{}, fmt.Errorf("listing %s: %w: it is cut off without saying where to go on", where, bucket.ErrUnavailable))
				return
			}
		}
	}
}

func listed(o types.Object, encoding types.EncodingType) (bucket.Info, error) {
	key := aws.ToString(o.Key)
	// Not every store encodes when asked; those that do say so.
	if encoding == types.EncodingTypeUrl {
		var err error
		if key, err = url.QueryUnescape(key); err != nil {
			return bucket.Info{}, fmt.Errorf("a key that cannot be decoded: %w", err)
		}
	}
	return bucket.Info{
		Key:     key,
		ETag:    unquote(o.ETag),
		ModTime: aws.ToTime(o.LastModified),
		Size:    aws.ToInt64(o.Size),
	}, nil
}
