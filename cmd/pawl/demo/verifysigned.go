package demo

import (
	"context"
	"crypto/subtle"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// verifySigned rejects a request that differs from its signed URL, or whose signature has expired.
// It accepts requests without a signature, like the store.
func verifySigned(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("X-Amz-Signature") && !signatureValid(r, time.Now()) {
			http.Error(w, "the request differs from the signed one, or its signature has expired", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// signatureValid signs the request again and compares the signatures.
func signatureValid(r *http.Request, now time.Time) bool {
	q := r.URL.Query()
	given := q.Get("X-Amz-Signature")
	q.Del("X-Amz-Signature")
	date, err := time.Parse("20060102T150405Z", q.Get("X-Amz-Date"))
	if err != nil {
		return false
	}
	life, err := strconv.Atoi(q.Get("X-Amz-Expires"))
	if err != nil || now.After(date.Add(time.Duration(life)*time.Second)) {
		return false
	}
	again := &http.Request{
		Method: r.Method, Host: r.Host, Header: http.Header{},
		URL: &url.URL{Scheme: "http", Host: r.Host, Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: q.Encode()},
	}
	for name := range strings.SplitSeq(q.Get("X-Amz-SignedHeaders"), ";") {
		switch name {
		case "host":
		case "content-length":
			again.ContentLength = r.ContentLength
		default:
			again.Header[http.CanonicalHeaderKey(name)] = r.Header.Values(name)
		}
	}
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableHeaderHoisting, o.DisableURIPathEscaping = true, true })
	key := aws.Credentials{AccessKeyID: accessKey, SecretAccessKey: accessKey}
	signed, _, err := signer.PresignHTTP(context.WithoutCancel(r.Context()), key, again, "UNSIGNED-PAYLOAD", "s3", region, date)
	if err != nil {
		return false
	}
	u, err := url.Parse(signed)
	return err == nil && subtle.ConstantTimeCompare([]byte(u.Query().Get("X-Amz-Signature")), []byte(given)) == 1
}
