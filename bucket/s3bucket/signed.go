package s3bucket

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
)

var _ bucket.Expirer = (*Store)(nil)

// PutSigned implements [bucket.Expirer] with a presigned request.
func (s *Store) PutSigned(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition, signed time.Time, valid time.Duration) (string, error) {
	ctx, stop := context.WithTimeout(ctx, valid)
	defer stop()
	etag, err := s.put(ctx, ref, o, c, s.presigned(signed, valid))
	if errors.Is(err, bucket.ErrDenied) && strings.Contains(strings.ToLower(err.Error()), "expired") {
		return "", fmt.Errorf("%w: %w", bucket.ErrExpired, err)
	}
	return etag, err
}

// presigned moves the signature from the headers to the URL.
func (s *Store) presigned(signed time.Time, valid time.Duration) func(*s3.Options) {
	sign := middleware.FinalizeMiddlewareFunc("Signing", func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (out middleware.FinalizeOutput, m middleware.Metadata, err error) {
		req, ok := in.Request.(*smithyhttp.Request)
		if !ok {
			return out, m, fmt.Errorf("%w: a request of type %T cannot be signed", bucket.ErrInvalid, in.Request)
		}
		if err := s.sign(ctx, req, signed, valid); err != nil {
			return out, m, err
		}
		return next.HandleFinalize(ctx, in)
	})
	return func(o *s3.Options) {
		o.APIOptions = append(o.APIOptions, v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware, func(stack *middleware.Stack) error {
			_, err := stack.Finalize.Swap("Signing", sign)
			return err
		})
	}
}

func (s *Store) sign(ctx context.Context, req *smithyhttp.Request, signed time.Time, valid time.Duration) error {
	o := s.client.Options()
	keys, err := o.Credentials.Retrieve(ctx)
	if err != nil {
		return err
	}
	query := req.URL.Query()
	query.Set("X-Amz-Expires", strconv.Itoa(int(valid/time.Second)))
	req.URL.RawQuery = query.Encode()
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	text, headers, err := signer.PresignHTTP(ctx, keys, req.Request, "UNSIGNED-PAYLOAD", "s3", o.Region, signed.UTC())
	if err != nil {
		return err
	}
	if req.URL, err = url.Parse(text); err != nil {
		return err
	}
	for name := range req.Header { // these are in the URL now
		if _, ok := headers[name]; !ok && strings.HasPrefix(name, "X-Amz-") {
			req.Header.Del(name)
		}
	}
	return nil
}
