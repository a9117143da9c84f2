package s3bucket

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
)

var _ bucket.Copier = (*Store)(nil)

const (
	// partSize is in bytes. More than maxParts parts need larger ones; S3 copies at most 5 GiB
	// with one request.
	partSize = 512 << 20
	// maxParts is a limit of S3.
	maxParts = 10_000
	// partConcurrency is per copy.
	partConcurrency = 4
	abortTimeout    = 5 * time.Second
)

// Copy implements [bucket.Copier]. The copy has no tags. After a failure, CopyParts needs the
// permission s3:AbortMultipartUpload to remove the parts. If the process is killed, only a
// lifecycle rule removes them.
func (s *Store) Copy(ctx context.Context, m bucket.CopyMethod, from bucket.Source, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
	if err := o.Check(); err != nil {
		return "", fmt.Errorf("copying %s to %s: %w", name(from.Ref), name(ref), err)
	}
	if m == bucket.CopyParts {
		return s.copyParts(ctx, from, ref, o, c)
	}
	in := &s3.CopyObjectInput{
		Bucket:            &ref.Bucket,
		Key:               &ref.Key,
		CopySource:        copySource(from.Ref),
		CopySourceIfMatch: quoteETag(from.ETag),
		IfMatch:           quoteETag(c.IfMatch),
		IfNoneMatch:       ifNoneMatch(c),
		MetadataDirective: types.MetadataDirectiveReplace,
		TaggingDirective:  types.TaggingDirectiveReplace,
		ContentType:       optional(o.ContentType),
		Metadata:          o.Metadata,

		CacheControl:       optional(o.Headers.CacheControl),
		ContentDisposition: optional(o.Headers.ContentDisposition),
		ContentEncoding:    optional(o.Headers.ContentEncoding),
		ContentLanguage:    optional(o.Headers.ContentLanguage),
	}
	out, err := s.client.CopyObject(ctx, in, withoutRetries)
	if err != nil {
		return "", copyError(ref, c, err)
	}
	if out.CopyObjectResult == nil {
		return "", fmt.Errorf("copying %s: %w: the response has no ETag", name(ref), bucket.ErrUnclear)
	}
	return unquote(out.CopyObjectResult.ETag), nil
}

func (s *Store) copyParts(ctx context.Context, from bucket.Source, ref event.Object, o bucket.Object, c bucket.Condition) (etag string, err error) {
	begun, err := s.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
		Bucket:      &ref.Bucket,
		Key:         &ref.Key,
		ContentType: optional(o.ContentType),
		Metadata:    o.Metadata,

		CacheControl:       optional(o.Headers.CacheControl),
		ContentDisposition: optional(o.Headers.ContentDisposition),
		ContentEncoding:    optional(o.Headers.ContentEncoding),
		ContentLanguage:    optional(o.Headers.ContentLanguage),
	})
	if err != nil {
		return "", prepareError("beginning to copy", ref, err)
	}
	defer func() {
		if err != nil {
			s.abort(ctx, ref, begun.UploadId)
		}
	}()
	parts, err := s.copyAllParts(ctx, from, ref, begun.UploadId, o.Size)
	if err != nil {
		return "", err
	}
	out, err := s.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket:          &ref.Bucket,
		Key:             &ref.Key,
		UploadId:        begun.UploadId,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
		IfMatch:         quoteETag(c.IfMatch),
		IfNoneMatch:     ifNoneMatch(c),
	}, withoutRetries)
	if err != nil {
		return "", copyError(ref, c, err)
	}
	return unquote(out.ETag), nil
}

func (s *Store) copyAllParts(ctx context.Context, from bucket.Source, ref event.Object, upload *string, size int64) ([]types.CompletedPart, error) {
	length := max(s.partSize, (size+maxParts-1)/maxParts)
	n := max(1, (size+length-1)/length)
	parts := make([]types.CompletedPart, n)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(partConcurrency)
	for i := range n {
		group.Go(func() error {
			in := &s3.UploadPartCopyInput{
				Bucket:            &ref.Bucket,
				Key:               &ref.Key,
				UploadId:          upload,
				PartNumber:        aws.Int32(int32(i + 1)),
				CopySource:        copySource(from.Ref),
				CopySourceIfMatch: quoteETag(from.ETag),
			}
			if n > 1 {
				in.CopySourceRange = aws.String(fmt.Sprintf("bytes=%d-%d", i*length, min((i+1)*length, size)-1))
			}
			out, err := s.client.UploadPartCopy(ctx, in)
			if err == nil && out.CopyPartResult == nil {
				err = errors.New("the response has no ETag")
			}
			if err != nil {
				return prepareError("copying a part of", ref, err)
			}
			parts[i] = types.CompletedPart{PartNumber: in.PartNumber, ETag: out.CopyPartResult.ETag}
			return nil
		})
	}
	return parts, group.Wait()
}

func (s *Store) abort(ctx context.Context, ref event.Object, upload *string) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer stop()
	_, _ = s.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &ref.Bucket, Key: &ref.Key, UploadId: upload}, withoutRetries)
}

// copyError treats a missing key as a change of the source or the object of c.
func copyError(ref event.Object, c bucket.Condition, err error) error {
	if errors.Is(classifyFor(ref, err), bucket.ErrNotFound) {
		return wrap("copying", name(ref), bucket.ErrPrecondition, err)
	}
	return writeError("copying", ref, c, err)
}

func prepareError(what string, ref event.Object, err error) error {
	if kind := classifyFor(ref, err); errors.Is(kind, bucket.ErrNotFound) || errors.Is(kind, bucket.ErrPrecondition) {
		return wrap(what, name(ref), bucket.ErrPrecondition, err)
	}
	return readError(what, ref, err)
}

// copySource encodes a plus sign, because some stores decode it as a space.
func copySource(ref event.Object) *string {
	escape := func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }
	source := escape(ref.Bucket) + "/" + strings.ReplaceAll(escape(ref.Key), "%2F", "/")
	if ref.VersionID != "" {
		source += "?versionId=" + escape(ref.VersionID)
	}
	return &source
}

func ifNoneMatch(c bucket.Condition) *string {
	if !c.IfAbsent {
		return nil
	}
	return aws.String("*")
}
