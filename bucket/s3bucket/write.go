package s3bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
)

func withoutRetries(o *s3.Options) { o.Retryer = aws.NopRetryer{} }

// withUnsignedBody sends a body that can be read only once. If the sender dies, versitygw keeps a
// part of it.
func withUnsignedBody(o *s3.Options) {
	o.APIOptions = append(o.APIOptions, v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware)
}

// Put implements [bucket.Store]. It reads an io.Seeker twice and signs its SHA-256.
func (s *Store) Put(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
	return s.put(ctx, ref, o, c)
}

func (s *Store) put(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition, more ...func(*s3.Options)) (string, error) {
	if err := o.Check(); err != nil {
		return "", fmt.Errorf("writing %s: %w", name(ref), err)
	}
	body, opts, err := prepare(o)
	if err != nil {
		return "", wrap("writing", name(ref), bucket.ErrInvalid, err)
	}
	in := &s3.PutObjectInput{
		Bucket:        &ref.Bucket,
		Key:           &ref.Key,
		Body:          body,
		ContentLength: &o.Size,
		ContentType:   optional(o.ContentType),
		Metadata:      o.Metadata,
		IfMatch:       quoteETag(c.IfMatch),
		IfNoneMatch:   ifNoneMatch(c),

		CacheControl:       optional(o.Headers.CacheControl),
		ContentDisposition: optional(o.Headers.ContentDisposition),
		ContentEncoding:    optional(o.Headers.ContentEncoding),
		ContentLanguage:    optional(o.Headers.ContentLanguage),
	}
	out, err := s.client.PutObject(ctx, in, append(opts, more...)...)
	if err != nil {
		return "", writeError("writing", ref, c, err)
	}
	return unquote(out.ETag), nil
}

func prepare(o bucket.Object) (io.Reader, []func(*s3.Options), error) {
	if o.Body == nil {
		o.Body = http.NoBody
	}
	if o.Size == 0 {
		return http.NoBody, []func(*s3.Options){withoutRetries}, expectEOF(o.Body)
	}
	if seeker, ok := o.Body.(io.ReadSeeker); ok {
		// A pipe is an io.Seeker, but its Seek fails.
		if length, err := remaining(seeker); err == nil {
			if length != o.Size {
				return nil, nil, fmt.Errorf("%w: %d bytes, want %d", errLength, length, o.Size)
			}
			return o.Body, []func(*s3.Options){withoutRetries}, nil
		}
	}
	return newExactReader(o.Body, o.Size), []func(*s3.Options){withoutRetries, withUnsignedBody}, nil
}

// Delete implements [bucket.Store].
func (s *Store) Delete(ctx context.Context, ref event.Object, c bucket.Condition) error {
	_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{
		Bucket:    &ref.Bucket,
		Key:       &ref.Key,
		VersionId: optional(ref.VersionID),
		IfMatch:   quoteETag(c.IfMatch),
	}, withoutRetries)
	if err != nil && c.IfMatch == "" && errors.Is(classify(err), bucket.ErrNotFound) {
		return nil // AWS reports success, but some stores do not
	}
	if err != nil {
		return writeError("removing", ref, c, err)
	}
	return nil
}

func quoteETag(etag string) *string {
	if etag == "" {
		return nil
	}
	return aws.String(`"` + etag + `"`)
}
