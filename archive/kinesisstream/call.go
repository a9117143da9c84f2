package kinesisstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/cenkalti/backoff/v5"

	"github.com/pawlhq/pawl/archive"
)

const (
	requestTimeout = 30 * time.Second // of one request; a response may have 10 MB
	retryTimeout   = time.Minute      // of all attempts
)

// call retries transient failures for up to retryTimeout.
func call[In, Out any](
	ctx context.Context, s *Stream, what string, send func(context.Context, In, ...func(*kinesis.Options)) (Out, error), in In,
) (Out, error) {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = betweenReads, 5*time.Second
	return backoff.Retry(ctx, func() (Out, error) {
		limited, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		out, err := send(limited, in)
		if err == nil {
			return out, nil
		}
		if ctx.Err() != nil {
			return out, backoff.Permanent(ctx.Err())
		}
		kind := kindOf(err)
		if kind == nil {
			return out, backoff.Permanent(fmt.Errorf("%s the stream %s: %w", what, s.name, err))
		}
		err = fmt.Errorf("%s the stream %s in %s: %w%s: %w", what, s.name, s.region, kind, hints[kind], err)
		if kind != archive.ErrUnavailable {
			err = backoff.Permanent(err)
		}
		return out, err
	}, backoff.WithBackOff(wait), backoff.WithMaxElapsedTime(retryTimeout))
}

var hints = map[error]string{
	archive.ErrNoStream: " (check its name, and the region)",
	archive.ErrDenied:   " (check the credentials and their permissions, the region and the clock)",
}

// codes lists the error codes whose kind does not follow from the HTTP status.
var codes = map[string]error{
	"ResourceNotFoundException": archive.ErrNoStream,

	"AccessDenied":                        archive.ErrDenied,
	"AccessDeniedException":               archive.ErrDenied,
	"ExpiredToken":                        archive.ErrDenied,
	"ExpiredTokenException":               archive.ErrDenied,
	"IncompleteSignature":                 archive.ErrDenied,
	"IncompleteSignatureException":        archive.ErrDenied,
	"InvalidClientTokenId":                archive.ErrDenied,
	"InvalidSignatureException":           archive.ErrDenied,
	"KMSAccessDeniedException":            archive.ErrDenied,
	"KMSDisabledException":                archive.ErrDenied,
	"KMSInvalidStateException":            archive.ErrDenied,
	"KMSNotFoundException":                archive.ErrDenied,
	"KMSOptInRequired":                    archive.ErrDenied,
	"MissingAuthenticationToken":          archive.ErrDenied,
	"MissingAuthenticationTokenException": archive.ErrDenied,
	"UnrecognizedClientException":         archive.ErrDenied,

	"InternalFailureException": archive.ErrUnavailable,
	"KMSThrottlingException":   archive.ErrUnavailable,
}

// credentials marks errors of the credentials provider. The SDK does not distinguish them from a
// broken connection.
type credentials struct{ aws.CredentialsProvider }

var errNoCredentials = errors.New("no credentials")

func (c credentials) Retrieve(ctx context.Context) (aws.Credentials, error) {
	got, err := c.CredentialsProvider.Retrieve(ctx)
	if err != nil && ctx.Err() == nil {
		return got, fmt.Errorf("%w: %w", errNoCredentials, err)
	}
	return got, err
}

// kindOf returns nil if a retry cannot help.
func kindOf(err error) error {
	if errors.Is(err, errNoCredentials) {
		return archive.ErrDenied
	}
	api, answered := errors.AsType[smithy.APIError](err)
	if answered {
		if kind, ok := codes[api.ErrorCode()]; ok {
			return kind
		}
		if _, throttled := retry.DefaultThrottleErrorCodes[api.ErrorCode()]; throttled {
			return archive.ErrUnavailable
		}
	}
	if resp, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		switch status := resp.HTTPStatusCode(); {
		case status >= 500 || status == http.StatusTooManyRequests:
			return archive.ErrUnavailable
		case status == http.StatusUnauthorized || status == http.StatusForbidden:
			return archive.ErrDenied
		}
	}
	_, unsent := errors.AsType[*smithyhttp.RequestSendError](err)
	_, cut := errors.AsType[*smithy.DeserializationError](err)
	if !answered && (unsent || cut || errors.Is(err, context.DeadlineExceeded)) {
		return archive.ErrUnavailable
	}
	return nil
}
