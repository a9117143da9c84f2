package sqssource

import (
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// trouble says what an error means for the queue as a whole.
type trouble uint8

const (
	none      trouble = iota
	complaint         // about this one request
	refusal           // it will not work later either, unless a person changes something
	outage            // it may work later
)

// hints say what a person can do about a refusal, by its code.
var hints = map[string]string{
	"AccessDenied":                "allow sqs:ReceiveMessage, sqs:DeleteMessage and sqs:ChangeMessageVisibility on the queue",
	"AccessDeniedException":       "allow sqs:ReceiveMessage, sqs:DeleteMessage and sqs:ChangeMessageVisibility on the queue",
	"KMS.AccessDeniedException":   "allow kms:Decrypt on the queue's key",
	"InvalidAddress":              "the queue is in another region: correct its URL",
	"SignatureDoesNotMatch":       "the secret key is wrong, or the queue is in another region",
	"InvalidSignatureException":   "the secret key is wrong, or the queue is in another region",
	"InvalidClientTokenId":        "the access key is not known there: correct the credentials",
	"UnrecognizedClientException": "the access key is not known there: correct the credentials",
	"InvalidAccessKeyId":          "the access key is not known there: correct the credentials",
}

// expired are codes of credentials that were good and will be again.
var expired = map[string]bool{
	"ExpiredToken": true, "ExpiredTokenException": true, "RequestExpired": true, "TokenRefreshRequired": true,
}

const (
	noQueue = "there is no such queue: create it, or correct its URL"
	noHost  = "there is no such host: correct the region in the URL"
)

// code returns what a server called its error, if it did.
func code(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	return ""
}

func isMissing(err error) bool {
	_, missing := errors.AsType[*types.QueueDoesNotExist](err)
	return missing
}

// isDenied reports that the caller lacks the permission for this request.
func isDenied(err error) bool {
	return code(err) == "AccessDenied" || code(err) == "AccessDeniedException"
}

// isNowhere reports that the host's name is not known, by a server of names that
// answers.
func isNowhere(err error) bool {
	dns, ok := errors.AsType[*net.DNSError](err)
	return ok && dns.IsNotFound && !dns.IsTemporary
}

// meaning sorts an error.
func meaning(err error) trouble {
	resp, answered := errors.AsType[*awshttp.ResponseError](err)
	_, throttled := retry.DefaultThrottleErrorCodes[code(err)]
	switch {
	case err == nil:
		return none
	case isMissing(err) || isNowhere(err) || hints[code(err)] != "":
		return refusal
	case !answered || throttled || expired[code(err)] || resp.HTTPStatusCode() == http.StatusTooManyRequests:
		return outage
	case resp.HTTPStatusCode() >= 400 && resp.HTTPStatusCode() < 500:
		return complaint
	}
	return outage
}

// explain says of an error which queue it is about, and what to do.
func (s *Source) explain(err error) error {
	hint := hints[code(err)]
	switch {
	case isMissing(err):
		hint = noQueue
	case isNowhere(err):
		hint = noHost
	case expired[code(err)]:
		hint = "the credentials have expired: renew them"
	}
	if hint == "" {
		return fmt.Errorf("sqs: %s (region %s): %w", s.cfg.URL, s.region, err)
	}
	return fmt.Errorf("sqs: %s (region %s): %s: %w", s.cfg.URL, s.region, hint, err)
}
