package s3bucket

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
)

var errNoCredentials = errors.New("no credentials")

var hints = map[error]string{
	bucket.ErrNoBucket:    " (create it, or correct its name)",
	bucket.ErrDenied:      " (check the credentials, the region, the clock and the bucket's policy)",
	bucket.ErrCredentials: " (renew them, or correct the configuration)",
	bucket.ErrInvalid:     " (a retry would fail too)",
}

func readError(what string, ref event.Object, err error) error {
	kind := classifyFor(ref, err)
	if kind == nil || errors.Is(kind, bucket.ErrPrecondition) || errors.Is(kind, bucket.ErrConflict) {
		kind = bucket.ErrUnavailable
	}
	return wrap(what, name(ref), kind, err)
}

func writeError(what string, ref event.Object, c bucket.Condition, err error) error {
	kind := classifyFor(ref, err)
	switch {
	case kind == nil:
		kind = bucket.ErrUnclear
	case errors.Is(kind, bucket.ErrNotFound) && c.IfMatch != "":
		// AWS and MinIO return NoSuchKey for If-Match on a missing key.
		kind = bucket.ErrPrecondition
	case errors.Is(kind, bucket.ErrNotFound):
		kind = bucket.ErrUnclear
	}
	return wrap(what, name(ref), kind, err)
}

// classifyFor is classify for a key. MinIO computes another signature for a key that it cannot
// store.
func classifyFor(ref event.Object, err error) error {
	api, ok := errors.AsType[smithy.APIError](err)
	if ok && api.ErrorCode() == "SignatureDoesNotMatch" && !utf8.ValidString(ref.Key) {
		return bucket.ErrInvalid
	}
	return classify(err)
}

func wrap(what, object string, kind, err error) error {
	return fmt.Errorf("%s %s: %w%s: %w", what, object, kind, hints[kind], storeError{err})
}

type storeError struct{ err error }

func (a storeError) Unwrap() error { return a.err }

func (a storeError) Error() string {
	op, ok := a.err.(*smithy.OperationError) //nolint:errorlint // a wrapping error has more details
	if !ok {
		return a.err.Error()
	}
	resp, ok := errors.AsType[*awshttp.ResponseError](a.err)
	status := ""
	if ok && resp.HTTPStatusCode() > 0 {
		status = strconv.Itoa(resp.HTTPStatusCode()) + " "
	}
	if api, ok := errors.AsType[smithy.APIError](a.err); ok {
		return strings.TrimSuffix(status+api.ErrorCode()+": "+api.ErrorMessage(), ": ")
	}
	if sent, ok := errors.AsType[*url.Error](a.err); ok && !errors.Is(a.err, errNoCredentials) {
		return sent.Err.Error()
	}
	return op.Err.Error()
}

// classify returns the kind of an error response that proves that nothing was done, or nil for an
// ambiguous answer.
func classify(err error) error {
	if errors.Is(err, errNoCredentials) {
		return bucket.ErrCredentials
	}
	code := ""
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		code = api.ErrorCode()
	}
	if kind, ok := codes[code]; ok {
		return kind
	}
	if _, throttled := retry.DefaultThrottleErrorCodes[code]; throttled || strings.HasPrefix(code, "KMS.") {
		return nil
	}
	if resp, ok := errors.AsType[*awshttp.ResponseError](err); ok {
		return byStatus(resp.HTTPStatusCode())
	}
	if _, ok := errors.AsType[*smithy.SerializationError](err); ok {
		return bucket.ErrInvalid // nothing was sent
	}
	return nil
}

// codes has the error codes whose kind does not follow from the status.
var codes = map[string]error{
	"NoSuchBucket":  bucket.ErrNoBucket,
	"NoSuchKey":     bucket.ErrNotFound,
	"NoSuchVersion": bucket.ErrNotFound,
	// 400, but the same request may succeed later.
	"RequestTimeout":               nil,
	"IncompleteBody":               nil,
	"BadDigest":                    nil,
	"XAmzContentSHA256Mismatch":    nil,
	"RequestTimeTooSkewed":         nil,
	"AuthorizationHeaderMalformed": bucket.ErrDenied, // another region's bucket
	"ExpiredToken":                 bucket.ErrCredentials,
	"ExpiredTokenException":        bucket.ErrCredentials,
	"InvalidToken":                 bucket.ErrCredentials,
	"InvalidClientTokenId":         bucket.ErrCredentials,
	"TokenRefreshRequired":         bucket.ErrCredentials,
	// 403, but the store denies access to all objects.
	"InvalidAccessKeyId":    bucket.ErrCredentials,
	"SignatureDoesNotMatch": bucket.ErrCredentials,
	// 409, but a retry does not help: the key is a folder of other keys (versitygw, MinIO).
	"ObjectParentIsFile":        bucket.ErrInvalid,
	"ExistingObjectIsDirectory": bucket.ErrInvalid,
	"InvalidBucketState":        bucket.ErrInvalid,
}

// A 404 without the code NoSuchKey is ambiguous: the bucket may be missing, or a proxy may have
// sent it.
func byStatus(status int) error {
	switch {
	case status == http.StatusNotFound, status == http.StatusRequestTimeout:
		return nil
	case status == http.StatusPreconditionFailed:
		return bucket.ErrPrecondition
	case status == http.StatusConflict, status == http.StatusTooManyRequests:
		return bucket.ErrConflict
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return bucket.ErrDenied
	case status >= 300 && status < 400:
		return bucket.ErrDenied // redirect to another region
	case status >= 400 && status < 500, status == http.StatusNotImplemented:
		return bucket.ErrInvalid
	}
	return nil
}
