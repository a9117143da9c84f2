package s3objects

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/encoding/httpbinding"

	"github.com/pawlhq/pawl/files"
)

// scope is what the URLs of a bucket have in common.
type scope struct {
	place  url.URL // of the bucket; its path ends in a slash
	region string  // that signatures name; empty: the SDK has to sign each URL
	signer *v4.Signer
}

// SignGet implements [files.Objects]. The SDK takes 40 µs for a URL, and a page has up
// to a thousand. So it signs one, which shows where the bucket is, and its signer
// alone, in 6 µs, all that follow.
func (b *Bucket) SignGet(ctx context.Context, f *files.File, life time.Duration) (string, error) {
	at := b.downloads.Load()
	var err error
	if at == nil {
		if at, err = b.scope(ctx); err == nil {
			b.downloads.Store(at)
		}
	}
	signed := ""
	switch {
	case err != nil:
	case at.region == "":
		signed, err = b.presignGet(ctx, f.Key, life)
	default:
		signed, err = b.signGet(ctx, at, f.Key, life)
	}
	if err != nil {
		return "", fmt.Errorf("s3objects: signing a URL of %s: %w", f.ID, err)
	}
	return signed, nil
}

// presignGet lets the SDK sign.
func (b *Bucket) presignGet(ctx context.Context, key string, life time.Duration) (string, error) {
	signed, err := s3.NewPresignClient(b.public).PresignGetObject(ctx, &s3.GetObjectInput{Bucket: &b.name, Key: &key}, s3.WithPresignExpires(life))
	if err != nil {
		return "", err
	}
	return signed.URL, nil
}

// scope reads from a URL what others have in common with it. Signatures for more
// than one region, and those of sessions, are the SDK's.
func (b *Bucket) scope(ctx context.Context) (*scope, error) {
	text, err := b.presignGet(ctx, "k", time.Minute)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, err
	}
	at := &scope{signer: v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })}
	query := u.Query()
	if parts := strings.Split(query.Get("X-Amz-Credential"), "/"); len(parts) == 5 && parts[3] == "s3" && query.Get("X-Amz-Algorithm") == "AWS4-HMAC-SHA256" {
		at.region = parts[2]
	}
	u.Path, u.RawPath, u.RawQuery = strings.TrimSuffix(u.Path, "k"), "", ""
	at.place = *u
	return at, nil
}

func (b *Bucket) signGet(ctx context.Context, at *scope, key string, life time.Duration) (string, error) {
	credentials, err := b.public.Options().Credentials.Retrieve(ctx)
	if err != nil {
		return "", err
	}
	u := at.place
	u.RawPath = httpbinding.EscapePath(u.Path+key, false)
	u.Path += key
	u.RawQuery = "X-Amz-Expires=" + strconv.Itoa(int(life.Seconds())) + "&x-id=GetObject"
	r := &http.Request{Method: http.MethodGet, Host: u.Host, URL: &u, Header: http.Header{}}
	signed, _, err := at.signer.PresignHTTP(ctx, credentials, r, "UNSIGNED-PAYLOAD", "s3", at.region, time.Now())
	return signed, err
}
