// Package s3objects implements the bucket of package files on Amazon S3 and compatible stores.
// Presigned upload URLs sign length, type, SHA-256, entity, and If-None-Match.
package s3objects

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"golang.org/x/sync/singleflight"

	"github.com/pawlhq/pawl/files"
)

// Bucket is one bucket of a store.
type Bucket struct {
	client, public  *s3.Client
	name            string
	acceptForgeable bool
	downloads       atomic.Pointer[urlScope]
	probed          atomic.Pointer[probe]
	probePrefix     atomic.Pointer[string] // prefix below which to probe
	probing         singleflight.Group
	inlineTypes     []string // browsers may show these content types
}

var (
	_ files.Objects   = (*Bucket)(nil)
	_ files.PartSizer = (*Bucket)(nil)
)

// New returns a bucket. endpoint is the URL at which users reach the store; the default is the
// client's endpoint.
func New(client *s3.Client, name, endpoint string) *Bucket {
	b := &Bucket{client: client, public: client, name: name, inlineTypes: InlineTypes}
	if endpoint != "" {
		b.public = s3.New(client.Options(), func(o *s3.Options) { o.BaseEndpoint = &endpoint })
	}
	return b
}

func (b *Bucket) put(f *files.File) *s3.PutObjectInput {
	return &s3.PutObjectInput{
		Bucket: &b.name, Key: &f.Key, ContentLength: &f.Size, ContentType: &f.ContentType, IfNoneMatch: aws.String("*"),
		ChecksumSHA256: aws.String(base64.StdEncoding.EncodeToString(f.SHA256[:])),
		Metadata:       map[string]string{"entity": f.Entity},
	}
}

// Sign implements [files.Objects]. The URL expires slightly before until, because signatures count
// whole seconds.
func (b *Bucket) Sign(ctx context.Context, f *files.File, until time.Time) (files.SignedRequest, error) {
	store, err := b.requireSuitable(ctx, f.Key)
	if err != nil {
		return files.SignedRequest{}, err
	}
	return b.signPut(ctx, b.public, f, until, store.signsEmptyHeaders)
}

func (b *Bucket) signPut(ctx context.Context, c *s3.Client, f *files.File, until time.Time, pinned bool) (files.SignedRequest, error) {
	life, err := urlLife(f, until)
	if err != nil {
		return files.SignedRequest{}, err
	}
	o := signHeaders(life)
	if pinned {
		o = signHeaders(life, emptyHeaders...)
	}
	signed, err := s3.NewPresignClient(c).PresignPutObject(ctx, b.put(f), o)
	if err != nil {
		return files.SignedRequest{}, fmt.Errorf("s3objects: sign the upload of %s: %w", f.ID, err)
	}
	return toSignedRequest(signed, until), nil
}

func toSignedRequest(signed *v4.PresignedHTTPRequest, until time.Time) files.SignedRequest {
	out := files.SignedRequest{Method: signed.Method, URL: signed.URL, Headers: map[string]string{}, Until: until}
	for name, values := range signed.SignedHeader {
		if name != "Host" && !slices.Contains(emptyHeaders, strings.ToLower(name)) {
			out.Headers[http.CanonicalHeaderKey(name)] = values[0]
		}
	}
	return out
}

func urlLife(f *files.File, until time.Time) (time.Duration, error) {
	life := time.Until(until).Truncate(time.Second) - time.Second
	if life <= 0 {
		return 0, fmt.Errorf("s3objects: %s: the upload deadline has passed", f.ID)
	}
	return life, nil
}

// signHeaders keeps headers out of the query, because a store may ignore them there. It signs the
// headers in pins as empty.
func signHeaders(life time.Duration, pins ...string) func(*s3.PresignOptions) {
	return func(o *s3.PresignOptions) {
		o.Expires = life
		o.ClientOptions = append(o.ClientOptions, signEmpty(pins))
		o.Presigner = v4.NewSigner(func(o *v4.SignerOptions) {
			o.DisableHeaderHoisting, o.DisableURIPathEscaping = true, true
		})
	}
}

// Put implements [files.Objects]. It sends one request: a retry after a successful write would
// conflict with that write.
func (b *Bucket) Put(ctx context.Context, f *files.File, body io.ReadSeeker) error {
	if _, err := b.requireSuitable(ctx, f.Key); err != nil {
		return err
	}
	in := b.put(f)
	in.Body = body
	_, err := b.client.PutObject(ctx, in, noRetry, s3.WithAPIOptions(v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware))
	if err != nil {
		return fmt.Errorf("s3objects: upload %s to %s: %w", f.ID, b.name, err)
	}
	return nil
}

func noRetry(o *s3.Options) { o.Retryer = aws.NopRetryer{} }

// Stat implements [files.Objects]. If an object has no SHA-256, Stat first probes whether the store
// returns SHA-256s. If so, the object is not an upload of this service.
func (b *Bucket) Stat(ctx context.Context, key string) (files.ObjectInfo, error) {
	seen, err := b.stat(ctx, key)
	if err == nil && seen.Found && seen.SHA256 == [32]byte{} {
		if b.probed.Load() == nil && b.probePrefix.Load() == nil {
			return files.ObjectInfo{}, fmt.Errorf("s3objects: stat %s/%s: %w", b.name, key, errNotProbed)
		}
		_, err = b.ensureProbed(ctx, key)
	}
	return seen, err
}

func (b *Bucket) stat(ctx context.Context, key string) (files.ObjectInfo, error) {
	for range statAttempts {
		out, err := b.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &b.name, Key: &key, ChecksumMode: types.ChecksumModeEnabled})
		if err == nil {
			seen := files.ObjectInfo{
				Found: true, Size: aws.ToInt64(out.ContentLength), Entity: out.Metadata["entity"], ContentType: aws.ToString(out.ContentType),
			}
			seen.SHA256, seen.Parts = parseSHA256(aws.ToString(out.ChecksumSHA256))
			answer, _ := awsmiddleware.GetRawResponse(out.ResultMetadata).(*smithyhttp.Response)
			return b.withDate(seen, key, answer)
		}
		refused, ok := errors.AsType[*awshttp.ResponseError](err)
		if !ok || refused.HTTPStatusCode() != http.StatusNotFound && refused.HTTPStatusCode() != http.StatusBadRequest {
			return files.ObjectInfo{}, fmt.Errorf("s3objects: stat %s/%s: %w", b.name, key, err)
		}
		answer, err := b.confirmAbsent(ctx, key)
		if unreadable, ok := errors.AsType[*awshttp.ResponseError](err); ok && isUnreadable(err) {
			return b.withDate(files.ObjectInfo{Found: true, Size: -1}, key, unreadable.Response)
		}
		if err != nil {
			return files.ObjectInfo{}, fmt.Errorf("s3objects: stat %s/%s: %w", b.name, key, err)
		}
		if answer != nil {
			return b.withDate(files.ObjectInfo{}, key, answer)
		}
	}
	return files.ObjectInfo{}, fmt.Errorf("s3objects: stat %s/%s: HEAD does not find the object, but GET does", b.name, key)
}

// isUnreadable recognizes an object that requires a customer encryption key. Only users can create
// one, on MinIO, with a replication header.
func isUnreadable(err error) bool {
	refused, ok := errors.AsType[smithy.APIError](err)
	return ok && refused.ErrorCode() == "InvalidRequest" && strings.Contains(refused.ErrorMessage(), "Server Side Encryption")
}

// statAttempts limits the attempts of Stat if the object appears between HEAD and GET.
const statAttempts = 3

// confirmAbsent sends a GET and returns the response only if the key does not exist. A 404 to HEAD
// has no body: it may come from a proxy, or the bucket may be missing.
func (b *Bucket) confirmAbsent(ctx context.Context, key string) (*smithyhttp.Response, error) {
	out, err := b.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.name, Key: &key})
	if err == nil {
		return nil, out.Body.Close()
	}
	if refused, ok := errors.AsType[*awshttp.ResponseError](err); ok && isCode(err, "NoSuchKey") {
		return refused.Response, nil
	}
	return nil, err
}

// PartSize implements [files.PartSizer].
func (b *Bucket) PartSize(ctx context.Context, key string) (int64, error) {
	out, err := b.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &b.name, Key: &key, PartNumber: aws.Int32(1)})
	if err != nil {
		return 0, fmt.Errorf("s3objects: stat the first part of %s/%s: %w", b.name, key, err)
	}
	return aws.ToInt64(out.ContentLength), nil
}

func (b *Bucket) withDate(seen files.ObjectInfo, key string, answer *smithyhttp.Response) (files.ObjectInfo, error) {
	if answer == nil {
		return files.ObjectInfo{}, fmt.Errorf("s3objects: stat %s/%s: the response is missing", b.name, key)
	}
	date, err := http.ParseTime(answer.Header.Get("Date"))
	if err != nil {
		return files.ObjectInfo{}, fmt.Errorf("s3objects: stat %s/%s: the response has no valid Date header: %w", b.name, key, err)
	}
	seen.Date = date
	return seen, nil
}

// Remove implements [files.Objects].
func (b *Bucket) Remove(ctx context.Context, key string) error {
	if _, err := b.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.name, Key: &key}); err != nil {
		return fmt.Errorf("s3objects: delete %s/%s: %w", b.name, key, err)
	}
	return nil
}
