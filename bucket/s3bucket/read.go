package s3bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
)

// Head implements [bucket.Store].
//
// A HEAD response has no body, so a 404 may also mean a missing bucket. If Pawl took that for
// missing objects, it would remove outputs. After a 4xx, Head therefore sends a GET, whose
// response states the reason.
func (s *Store) Head(ctx context.Context, ref event.Object) (bucket.Info, error) {
	out, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &ref.Bucket, Key: &ref.Key, VersionId: optional(ref.VersionID)})
	if err != nil {
		resp, ok := errors.AsType[*awshttp.ResponseError](err)
		if ok && resp.HTTPStatusCode() >= 400 && resp.HTTPStatusCode() < 500 {
			return s.headByGet(ctx, ref)
		}
		return bucket.Info{}, readError("reading the metadata of", ref, err)
	}
	return bucket.Info{
		Key:         ref.Key,
		VersionID:   version(out.VersionId),
		ETag:        unquote(out.ETag),
		ModTime:     aws.ToTime(out.LastModified),
		Size:        aws.ToInt64(out.ContentLength),
		ContentType: aws.ToString(out.ContentType),
		Headers:     headers(out.CacheControl, out.ContentDisposition, out.ContentEncoding, out.ContentLanguage),
		Metadata:    lower(out.Metadata),
	}, nil
}

func (s *Store) headByGet(ctx context.Context, ref event.Object) (bucket.Info, error) {
	info, body, err := s.Get(ctx, ref)
	if err != nil {
		return bucket.Info{}, err
	}
	return info, body.Close()
}

// Get implements [bucket.Store]. All errors of Read match ErrUnavailable.
func (s *Store) Get(ctx context.Context, ref event.Object) (bucket.Info, io.ReadCloser, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	late := time.AfterFunc(firstByteTimeout, func() { cancel(errNoFirstByte) })
	out, err := s.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &ref.Bucket, Key: &ref.Key, VersionId: optional(ref.VersionID)})
	late.Stop()
	if err != nil {
		if errors.Is(context.Cause(ctx), errNoFirstByte) {
			err = fmt.Errorf("%w: %w", errNoFirstByte, storeError{err})
		}
		cancel(nil)
		return bucket.Info{}, nil, readVersion(ref, err)
	}
	if out.ContentLength == nil {
		out.Body.Close()
		cancel(nil)
		return bucket.Info{}, nil, fmt.Errorf("reading %s: %w: the response has no Content-Length", name(ref), bucket.ErrUnavailable)
	}
	info := bucket.Info{
		Key:         ref.Key,
		VersionID:   version(out.VersionId),
		ETag:        unquote(out.ETag),
		ModTime:     aws.ToTime(out.LastModified),
		Size:        *out.ContentLength,
		ContentType: aws.ToString(out.ContentType),
		Headers:     headers(out.CacheControl, out.ContentDisposition, out.ContentEncoding, out.ContentLanguage),
		Metadata:    lower(out.Metadata),
	}
	return info, &content{ReadCloser: out.Body, cancel: cancel, left: info.Size, object: name(ref)}, nil
}

// firstByteTimeout includes all retries of the SDK. Callers of Get retry on their own.
const firstByteTimeout = 20 * time.Second

var errNoFirstByte = fmt.Errorf("no response within %v", firstByteTimeout)

// readVersion is readError for a request that may have a version ID. S3 responds to a delete
// marker with "method not allowed".
func readVersion(ref event.Object, err error) error {
	resp, ok := errors.AsType[*awshttp.ResponseError](err)
	if ok && ref.VersionID != "" && resp.HTTPStatusCode() == http.StatusMethodNotAllowed {
		return wrap("reading", name(ref), bucket.ErrNotFound, err)
	}
	return readError("reading", ref, err)
}

// content returns an error if the body is truncated.
type content struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
	left   int64
	object string
}

// Read implements [io.Reader].
func (c *content) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.left -= int64(n)
	if err == io.EOF && c.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil && err != io.EOF {
		err = fmt.Errorf("reading %s: %w: %w", c.object, bucket.ErrUnavailable, err)
	}
	return n, err
}

// Close implements [io.Closer].
func (c *content) Close() error {
	defer c.cancel(nil)
	return c.ReadCloser.Close()
}

func headers(cache, disposition, encoding, language *string) bucket.Headers {
	return bucket.Headers{
		CacheControl: aws.ToString(cache), ContentDisposition: aws.ToString(disposition),
		ContentEncoding: aws.ToString(encoding), ContentLanguage: aws.ToString(language),
	}
}

func name(ref event.Object) string { return ref.String() }

func unquote(etag *string) string { return strings.Trim(aws.ToString(etag), `"`) }

func version(id *string) string {
	if v := aws.ToString(id); v != "null" {
		return v
	}
	return ""
}

// optional returns nil for "", so that the request has no such header.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func lower(m map[string]string) map[string]string {
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[strings.ToLower(k)] = v
	}
	return out
}
