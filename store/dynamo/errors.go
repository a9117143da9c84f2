package dynamo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/pawlhq/pawl/store"
)

// Codes in the reasons of a canceled transaction.
const (
	codeNone    = "None"
	codeRefused = "ConditionalCheckFailed"
)

// throttleCodes are codes of requests that certainly changed nothing.
var throttleCodes = map[string]bool{
	"ProvisionedThroughputExceededException": true, "ProvisionedThroughputExceeded": true,
	"ThrottlingException": true, "ThrottlingError": true, "Throttling": true, "RequestLimitExceeded": true,
	"TransactionConflictException": true, "TransactionConflict": true,
	"ExpiredTokenException": true, "ExpiredToken": true, // until the credentials are renewed
}

// rejectionCodes are codes of requests that always fail.
var rejectionCodes = map[string]bool{
	"ValidationException": true, "ValidationError": true, "SerializationException": true,
	"ItemCollectionSizeLimitExceededException": true, "ItemCollectionSizeLimitExceeded": true,
	"IdempotentParameterMismatchException": true, "RequestEntityTooLarge": true,
}

// permanentAdvice maps the codes of permanent failures to advice for the user.
var permanentAdvice = map[string]string{
	"ResourceNotFoundException":           "does not exist: create it with \"pawl ledger create\", or correct its name and region",
	"AccessDeniedException":               "denies access to these credentials: grant the permissions that docs/AWS.md lists",
	"UnrecognizedClientException":         "rejects these credentials: correct them, or the region",
	"InvalidSignatureException":           "rejects the signature: correct the secret key, or the clock of this machine",
	"MissingAuthenticationTokenException": "needs credentials",
	"KMSAccessDeniedException":            "is encrypted with a key that these credentials may not use",
	"KMSDisabledException":                "is encrypted with a key that is disabled: enable it",
	"KMSInvalidStateException":            "is encrypted with a key that cannot be used",
	"KMSNotFoundException":                "is encrypted with a key that no longer exists",
}

func refusedOnly(e *types.TransactionCanceledException) bool {
	refused := false
	for _, r := range e.CancellationReasons {
		switch aws.ToString(r.Code) {
		case codeNone:
		case codeRefused:
			refused = true
		default:
			return false
		}
	}
	return refused
}

// codesOf returns the error codes in a response, including those of a canceled transaction's
// reasons.
func codesOf(err error) (codes []string) {
	if canceled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		for _, r := range canceled.CancellationReasons {
			if code := aws.ToString(r.Code); code != codeNone && code != codeRefused {
				codes = append(codes, code)
			}
		}
		return codes
	}
	if op, ok := errors.AsType[*smithy.OperationError](err); ok {
		if other, nested := errors.AsType[*smithy.OperationError](op.Err); nested && other.Service() != dynamodb.ServiceID {
			return nil // an error of a credentials service
		}
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return []string{api.ErrorCode()}
	}
	return nil
}

// errNotSent is returned for a request that was not sent, because its context had ended.
var errNotSent = errors.New("not sent")

// kind returns the error of package store for an error of the SDK. It returns ErrUnclear unless
// the request certainly changed nothing.
func kind(err error) error {
	codes := codesOf(err)
	all := func(set map[string]bool) bool {
		for _, c := range codes {
			if !set[c] {
				return false
			}
		}
		return len(codes) > 0
	}
	answer, answered := errors.AsType[*awshttp.ResponseError](err)
	op, network := errors.AsType[*net.OpError](err)
	switch {
	case all(rejectionCodes), answered && answer.HTTPStatusCode() == http.StatusRequestEntityTooLarge:
		return store.ErrRejected
	case answered && answer.HTTPStatusCode() >= http.StatusInternalServerError:
		return store.ErrUnclear
	case all(throttleCodes), errors.Is(err, errNotSent), network && op.Op == "dial":
		return store.ErrThrottled
	}
	if _, canceled := errors.AsType[*types.TransactionCanceledException](err); canceled {
		return store.ErrThrottled // nothing was written
	}
	return store.ErrUnclear
}

// call runs one request with the request timeout, and explains its error.
func (s *Store) call(ctx context.Context, what string, f func(context.Context) error) error {
	if ctx.Err() != nil {
		return s.explain(ctx, what, errNotSent)
	}
	bounded, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.explain(ctx, what, f(bounded))
}

func (s *Store) explain(ctx context.Context, what string, err error) error {
	if _, refused := errors.AsType[*types.ConditionalCheckFailedException](err); refused {
		return err
	}
	if canceled, ok := errors.AsType[*types.TransactionCanceledException](err); ok && refusedOnly(canceled) {
		return err
	}
	if err == nil || errors.Is(err, store.ErrUnusable) {
		return err
	}
	for _, code := range codesOf(err) {
		if why := permanentAdvice[code]; why != "" {
			return s.unusable(why, err)
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %s in %s: %w", kind(err), what, s, context.Cause(ctx))
	}
	return fmt.Errorf("%w: %s in %s: %w", kind(err), what, s, oneLine{err})
}

// unusable returns an error with the reason why the table cannot be used. cause may be nil.
func (s *Store) unusable(why string, cause error) error {
	if cause == nil {
		return fmt.Errorf("%w: %s %s", store.ErrUnusable, s, why)
	}
	return fmt.Errorf("%w: %s %s (%w)", store.ErrUnusable, s, why, oneLine{cause})
}

// oneLine prints an error on one line.
type oneLine struct{ error }

// Error omits the lines after the first line of a rejected signature, because they may contain
// the session token.
func (e oneLine) Error() string {
	said := e.error.Error()
	if slices.Contains(codesOf(e.error), "InvalidSignatureException") {
		said, _, _ = strings.Cut(said, "\n")
	}
	return strings.Join(strings.Fields(said), " ")
}

func (e oneLine) Unwrap() error { return e.error }
