package s3bucket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
)

// List implements [bucket.Store]. MinIO rejects every page with an object that it cannot read.
// List then requests smaller pages until it has found that object.
func (s *Store) List(ctx context.Context, name, prefix, startAfter string) iter.Seq2[bucket.Info, error] {
	return func(yield func(bucket.Info, error) bool) {
		p := page{store: s, bucket: name, prefix: prefix, after: startAfter}
		last := startAfter
		for {
			infos, next, err := p.read(ctx)
			switch {
			case errors.Is(err, errUnlistablePage) && p.maxKeys != 1:
				p.after, p.token, p.maxKeys = last, nil, cmp.Or(p.maxKeys, 2*firstRetrySize)/2
				continue
			case errors.Is(err, errUnlistablePage):
				info, err := p.unlistable(ctx)
				if !yield(info, err) || info.Key == "" {
					return
				}
				last, p.after, p.maxKeys = info.Key, info.Key, 0
				continue
			}
			for _, info := range infos {
				if !yield(info, nil) {
					return
				}
				last = info.Key
			}
			if err != nil {
				yield(bucket.Info{}, err)
			}
			if err != nil || next == nil {
				return
			}
			if p.token = next; p.maxKeys > 0 {
				p.after, p.token = last, nil
			}
		}
	}
}

const firstRetrySize = 512

type page struct {
	store          *Store
	bucket, prefix string
	after          string
	token          *string
	maxKeys        int32 // zero means the default of the store
}

func (p *page) read(ctx context.Context) (infos []bucket.Info, next *string, err error) {
	in := &s3.ListObjectsV2Input{
		Bucket:            &p.bucket,
		Prefix:            optional(p.prefix),
		StartAfter:        optional(p.after),
		ContinuationToken: p.token,
		// XML cannot represent every byte of a key.
		EncodingType: types.EncodingTypeUrl,
	}
	if p.maxKeys > 0 {
		in.MaxKeys = &p.maxKeys
	}
	where := event.Quote("s3://" + p.bucket + "/" + p.prefix)
	out, err := p.store.client.ListObjectsV2(ctx, in, requireListing)
	if err != nil {
		return nil, nil, readError("listing", event.Object{Bucket: p.bucket, Key: p.prefix}, err)
	}
	for _, o := range out.Contents {
		info, err := listed(o, out.EncodingType)
		if err != nil {
			return nil, nil, fmt.Errorf("listing %s: %w: %w", where, bucket.ErrUnavailable, err)
		}
		infos = append(infos, info)
	}
	if !aws.ToBool(out.IsTruncated) {
		return infos, nil, nil
	}
	if aws.ToString(out.NextContinuationToken) == "" {
		return infos, nil, fmt.Errorf("listing %s: %w: a truncated listing has no continuation token", where, bucket.ErrUnavailable)
	}
	return infos, out.NextContinuationToken, nil
}

func listed(o types.Object, encoding types.EncodingType) (bucket.Info, error) {
	key := aws.ToString(o.Key)
	// Some stores ignore the request for encoding.
	if encoding == types.EncodingTypeUrl {
		var err error
		if key, err = url.QueryUnescape(key); err != nil {
			return bucket.Info{}, fmt.Errorf("cannot decode a key: %w", err)
		}
	}
	return bucket.Info{
		Key:     key,
		ETag:    unquote(o.ETag),
		ModTime: aws.ToTime(o.LastModified),
		Size:    aws.ToInt64(o.Size),
	}, nil
}
