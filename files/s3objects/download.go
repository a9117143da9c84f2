package s3objects

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/encoding/httpbinding"

	"github.com/pawlhq/pawl/files"
)

type urlScope struct {
	base   url.URL // URL of the bucket; its path ends with a slash
	host   string  // Host header, without a default port
	region string  // for signatures; if empty, the SDK must sign each URL
	key    atomic.Pointer[signingKey]
}

type signingKey struct {
	day, access, secret string
	key                 []byte
}

// SignGet implements [files.Objects]. The SDK needs 40 µs per URL, which is too slow for a page of
// 1,000. SignGet therefore learns the location of the bucket from one URL of the SDK and signs the
// others itself.
func (b *Bucket) SignGet(ctx context.Context, f *files.File, life time.Duration) (string, error) {
	if _, err := b.requireSuitable(ctx, f.Key); err != nil {
		return "", err
	}
	at := b.downloads.Load()
	var err error
	if at == nil {
		if at, err = b.findURLScope(ctx); err == nil {
			b.downloads.Store(at)
		}
	}
	signed := ""
	switch {
	case err != nil:
	case at.region == "":
		signed, err = b.presignGet(ctx, f, life)
	default:
		signed, err = b.signGet(ctx, at, f, life)
	}
	if err != nil {
		return "", fmt.Errorf("s3objects: sign a URL of %s: %w", f.ID, err)
	}
	return signed, nil
}

// InlineTypes are the default content types that browsers may display. None of them can contain
// scripts.
var InlineTypes = []string{"image/jpeg", "image/png", "image/gif", "image/webp", "image/avif", "video/mp4", "audio/mpeg"}

// SetInlineTypes replaces InlineTypes. Scripts in an HTML page or SVG picture would run on the
// store's origin. Call it before the first use.
func (b *Bucket) SetInlineTypes(types []string) { b.inlineTypes = types }

func (b *Bucket) disposition(f *files.File) string {
	if slices.Contains(b.inlineTypes, f.ContentType) {
		return ""
	}
	return "attachment"
}

func (b *Bucket) presignGet(ctx context.Context, f *files.File, life time.Duration) (string, error) {
	in := &s3.GetObjectInput{Bucket: &b.name, Key: &f.Key}
	if d := b.disposition(f); d != "" {
		in.ResponseContentDisposition = &d
	}
	signed, err := s3.NewPresignClient(b.public).PresignGetObject(ctx, in, s3.WithPresignExpires(life))
	if err != nil {
		return "", err
	}
	return signed.URL, nil
}

// findURLScope leaves region empty for multi-region and session signatures, which only the SDK
// computes.
func (b *Bucket) findURLScope(ctx context.Context) (*urlScope, error) {
	text, err := b.presignGet(ctx, &files.File{Key: "k"}, time.Minute)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, err
	}
	at := &urlScope{}
	query := u.Query()
	if parts := strings.Split(query.Get("X-Amz-Credential"), "/"); len(parts) == 5 && parts[3] == "s3" && query.Get("X-Amz-Algorithm") == "AWS4-HMAC-SHA256" {
		at.region = parts[2]
	}
	u.Path, u.RawPath, u.RawQuery = strings.TrimSuffix(u.Path, "k"), "", ""
	at.base, at.host = *u, strings.TrimSuffix(u.Host, map[string]string{"http": ":80", "https": ":443"}[u.Scheme])
	return at, nil
}

// signGet follows https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html
func (b *Bucket) signGet(ctx context.Context, at *urlScope, f *files.File, life time.Duration) (string, error) {
	c, err := b.public.Options().Credentials.Retrieve(ctx)
	if err != nil {
		return "", err
	}
	now := time.Now().UTC().Format("20060102T150405Z")
	within := now[:8] + "/" + at.region + "/s3/aws4_request"
	query := "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=" + escape(c.AccessKeyID+"/"+within) +
		"&X-Amz-Date=" + now + "&X-Amz-Expires=" + strconv.Itoa(int(life.Seconds()))
	if c.SessionToken != "" {
		query += "&X-Amz-Security-Token=" + escape(c.SessionToken)
	}
	query += "&X-Amz-SignedHeaders=host"
	if d := b.disposition(f); d != "" {
		query += "&response-content-disposition=" + escape(d)
	}
	query += "&x-id=GetObject"
	path := httpbinding.EscapePath(at.base.Path+f.Key, false)
	request := sha256.Sum256([]byte("GET\n" + path + "\n" + query + "\nhost:" + at.host + "\n\nhost\nUNSIGNED-PAYLOAD"))
	signature := hmacSHA256(at.signingKeyFor(now[:8], &c), "AWS4-HMAC-SHA256\n"+now+"\n"+within+"\n"+hex.EncodeToString(request[:]))
	return at.base.Scheme + "://" + at.base.Host + path + "?" + query + "&X-Amz-Signature=" + hex.EncodeToString(signature), nil
}

func escape(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

func (at *urlScope) signingKeyFor(day string, c *aws.Credentials) []byte {
	if k := at.key.Load(); k != nil && k.day == day && k.access == c.AccessKeyID && k.secret == c.SecretAccessKey {
		return k.key
	}
	key := []byte("AWS4" + c.SecretAccessKey)
	for _, part := range []string{day, at.region, "s3", "aws4_request"} {
		key = hmacSHA256(key, part)
	}
	at.key.Store(&signingKey{day, c.AccessKeyID, c.SecretAccessKey, key})
	return key
}

func hmacSHA256(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}
