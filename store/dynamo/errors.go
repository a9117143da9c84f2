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

const (
	codeNone    = "None"
	codeRefused = "ConditionalCheckFailed"
)

// Requests with these codes certainly changed nothing.
var throttleCodes = map[string]bool{
	"ProvisionedThroughputExceededException": true, "ProvisionedThroughputExceeded": true,
	"ThrottlingException": true, "ThrottlingError": true, "Throttling": true, "RequestLimitExceeded": true,
	"TransactionConflictException": true, "TransactionConflict": true,
	"ExpiredTokenException": true, "ExpiredToken": true, // until the credentials are renewed
}

// Requests with these codes always fail.
var rejectionCodes = map[string]bool{
	"ValidationException": true, "ValidationError": true, "SerializationException": true,
	"ItemCollectionSizeLimitExceededException": true, "ItemCollectionSizeLimitExceeded": true,
	"IdempotentParameterMismatchException": true, "RequestEntityTooLarge": true,
}

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

var errNotSent = errors.New("not sent")

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

func (s *Store) unusable(why string, cause error) error {
	if cause == nil {
		return fmt.Errorf("%w: %s %s", store.ErrUnusable, s, why)
	}
	return fmt.Errorf("%w: %s %s (%w)", store.ErrUnusable, s, why, oneLine{cause})
}

type oneLine struct{ error }

// The other lines of a rejected signature may contain the session token.
func (e oneLine) Error() string {
	said := e.error.Error()
	if slices.Contains(codesOf(e.error), "InvalidSignatureException") {
		said, _, _ = strings.Cut(said, "\n")
	}
	return strings.Join(strings.Fields(said), " ")
}

func (e oneLine) Unwrap() error { return e.error }
