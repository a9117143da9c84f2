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

// errorClass is an error's meaning for the whole queue.
type errorClass uint8

const (
	noError        errorClass = iota
	requestError              // about one request or message
	permanentError            // until an operator changes something
	transientError
)

var hints = map[string]string{
	"AccessDenied":                "allow sqs:ReceiveMessage, sqs:DeleteMessage and sqs:ChangeMessageVisibility on the queue",
	"AccessDeniedException":       "allow sqs:ReceiveMessage, sqs:DeleteMessage and sqs:ChangeMessageVisibility on the queue",
	"KMS.AccessDeniedException":   "allow kms:Decrypt on the queue's key",
	"InvalidAddress":              "the queue is in another region: correct its URL",
	"SignatureDoesNotMatch":       "the secret key is wrong, or the queue is in another region",
	"InvalidSignatureException":   "the secret key is wrong, or the queue is in another region",
	"InvalidClientTokenId":        "the access key is unknown: correct the credentials",
	"UnrecognizedClientException": "the access key is unknown: correct the credentials",
	"InvalidAccessKeyId":          "the access key is unknown: correct the credentials",
}

var expiredCredentials = map[string]bool{
	"ExpiredToken": true, "ExpiredTokenException": true, "RequestExpired": true, "TokenRefreshRequired": true,
}

const (
	noQueue = "the queue does not exist: create it, or correct its URL"
	noHost  = "unknown host: correct the region in the URL"
)

func errorCode(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	return ""
}

func isMissing(err error) bool {
	_, missing := errors.AsType[*types.QueueDoesNotExist](err)
	return missing
}

func isDenied(err error) bool {
	return errorCode(err) == "AccessDenied" || errorCode(err) == "AccessDeniedException"
}

func isUnknownHost(err error) bool {
	dns, ok := errors.AsType[*net.DNSError](err)
	return ok && dns.IsNotFound && !dns.IsTemporary
}

func classify(err error) errorClass {
	resp, answered := errors.AsType[*awshttp.ResponseError](err)
	_, throttled := retry.DefaultThrottleErrorCodes[errorCode(err)]
	switch {
	case err == nil:
		return noError
	case isMissing(err) || isUnknownHost(err) || hints[errorCode(err)] != "":
		return permanentError
	case !answered || throttled || expiredCredentials[errorCode(err)] || resp.HTTPStatusCode() == http.StatusTooManyRequests:
		return transientError
	case resp.HTTPStatusCode() >= 400 && resp.HTTPStatusCode() < 500:
		return requestError
	}
	return transientError
}

func (s *Source) explain(err error) error {
	hint := hints[errorCode(err)]
	switch {
	case isMissing(err):
		hint = noQueue
	case isUnknownHost(err):
		hint = noHost
	case expiredCredentials[errorCode(err)]:
		hint = "the credentials have expired: renew them"
	}
	if hint == "" {
		return fmt.Errorf("sqs: %s (region %s): %w", s.cfg.URL, s.region, err)
	}
	return fmt.Errorf("sqs: %s (region %s): %s: %w", s.cfg.URL, s.region, hint, err)
}
