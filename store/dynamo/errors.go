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

// Codes of the reasons for which a transaction is canceled.
const (
	codeNone    = "None"
	codeRefused = "ConditionalCheckFailed"
)

// throttles are codes of requests that certainly changed nothing.
var throttleCodes = map[string]bool{
	"ProvisionedThroughputExceededException": true, "ProvisionedThroughputExceeded": true,
	"ThrottlingException": true, "ThrottlingError": true, "Throttling": true, "RequestLimitExceeded": true,
	"TransactionConflictException": true, "TransactionConflict": true,
	"ExpiredTokenException": true, "ExpiredToken": true, // until the credentials are renewed
}

// rejections are codes of requests that fail however often they are sent.
var rejectionCodes = map[string]bool{
	"ValidationException": true, "ValidationError": true, "SerializationException": true,
	"ItemCollectionSizeLimitExceededException": true, "ItemCollectionSizeLimitExceeded": true,
	"IdempotentParameterMismatchException": true, "RequestEntityTooLarge": true,
}

// permanentAdvice maps the codes of permanent failures to advice for the user.
var permanentAdvice = map[string]string{
	"ResourceNotFoundException":           "does not exist: create it with \"pawl ledger create\", or correct its name and region",
	"AccessDeniedException":               "denies access to these credentials: grant the permissions that docs/AWS.md lists",
	"UnrecognizedClientException":         "does not know these credentials: correct them, or the region",
	"InvalidSignatureException":           "does not accept the signature: correct the secret key, and the clock of this machine",
	"MissingAuthenticationTokenException": "needs credentials",
	"KMSAccessDeniedException":            "is encrypted with a key that these credentials may not use",
	"KMSDisabledException":                "is encrypted with a key that is disabled: enable it",
	"KMSInvalidStateException":            "is encrypted with a key that cannot be used",
	"KMSNotFoundException":                "is encrypted with a key that is gone",
}

// refusedOnly reports that nothing but conditions canceled a transaction.
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

// codesOf returns the codes that an answer gives, those of a canceled transaction's
// reasons included.
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
			return nil // the error of a service that gives credentials
		}
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return []string{api.ErrorCode()}
	}
	return nil
}

// errNotSent is a request that was not sent, because its context had ended.
var errNotSent = errors.New("not sent")

// kind returns the error of package store that an error is. What is not known to have
// changed nothing is unclear.
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

// call runs one request within its time, and gives its error a kind.
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

// unusable returns an error that says why the table cannot serve. cause may be nil.
func (s *Store) unusable(why string, cause error) error {
	if cause == nil {
		return fmt.Errorf("%w: %s %s", store.ErrUnusable, s, why)
	}
	return fmt.Errorf("%w: %s %s (%w)", store.ErrUnusable, s, why, oneLine{cause})
}

// oneLine prints an error on one line.
type oneLine struct{ error }

// Error leaves out what follows the first line of a refused signature: it may have the
// session token.
func (e oneLine) Error() string {
	said := e.error.Error()
	if slices.Contains(codesOf(e.error), "InvalidSignatureException") {
		said, _, _ = strings.Cut(said, "\n")
	}
	return strings.Join(strings.Fields(said), " ")
}

func (e oneLine) Unwrap() error { return e.error }
