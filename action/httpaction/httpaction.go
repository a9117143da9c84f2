// Package httpaction reports each object to a web service with a POST request.
//
// The body is [action.Facts] as JSON:
//
//	{"pipeline": "load", "bucket": "exports", "key": "in/a.csv", "kind": "created", "etag": "9a0364b9e99bb480dd25e1f0284c8555",
//	 "version_id": "", "size": 1024, "fence": 1763700000000, "attempt": 1, "idempotency_key": "0123456789abcdef0123456789abcdef"}
//
// If a key is not valid UTF-8, "key_base64" replaces "key". kind is "created" or "removed". The
// headers are
//
//	Idempotency-Key    equal for all attempts at one version of the object
//	Pawl-Fence         increases with each attempt; reject lower values
//	webhook-id         the idempotency key
//	webhook-timestamp  seconds since 1970
//	webhook-signature  only with a secret
//	traceparent        with tracing: the W3C trace context
//
// The webhook headers follow https://www.standardwebhooks.com.
//
// A 2xx response completes the attempt. Pawl retries after 408, 425, 429, 5xx or no valid
// response, not before Retry-After. The service may therefore receive a request twice. All other
// responses are permanent errors. These include redirects, because Pawl sends a signed request
// only to the configured URL. Requests use no proxy.
//
// An attempt does not count if this machine lacks file descriptors or a name server. A failed
// connection or a 503 for two objects, or a 502 or 504 for five, is an outage of the service; see
// [pawl.OutageIfShared].
package httpaction

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/action"
)

// DefaultTimeout is the default of Config.Timeout.
const DefaultTimeout = 30 * time.Second

// Config configures a handler. URL is required.
type Config struct {
	// URL is an http or https URL without user and password. Errors and logs omit its query.
	URL string `yaml:"url"`
	// Secret signs the requests. It is "whsec_" followed by base64, or any other text, whose
	// bytes are the key. If empty, requests are not signed.
	Secret string `yaml:"secret"`
	// Timeout limits the wait for a response. Default 30 s.
	Timeout time.Duration `yaml:"timeout"`
}

type handler struct {
	url         string
	redactedURL string
	signer      *standardwebhooks.Webhook
	timeout     time.Duration
	bodyTimeout time.Duration
	client      *http.Client
}

// New returns a handler that posts to c.URL.
func New(c Config) (pawl.Handler, error) {
	return newHandler(c)
}

func newHandler(c Config) (*handler, error) {
	u, err := parseURL(c.URL)
	if err != nil {
		return nil, fmt.Errorf("http: url: %w", err)
	}
	signer, err := newSigner(c.Secret)
	if err != nil {
		return nil, err
	}
	if c.Timeout < 0 {
		return nil, fmt.Errorf("http: timeout %v: must be positive", c.Timeout)
	}
	return &handler{
		url:         u.String(),
		redactedURL: redactedURL(u),
		signer:      signer,
		timeout:     cmp.Or(c.Timeout, DefaultTimeout),
		bodyTimeout: bodyTimeout,
		client:      newClient(),
	}, nil
}

// Errors of parseURL do not repeat the URL, which may contain secrets.
func parseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case s == "":
		return nil, errors.New("missing")
	case err != nil:
		return nil, errors.New("is not a URL (look for spaces, line ends, a bad port, a % without two digits)")
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return nil, errors.New("must begin with http:// or https:// and a host")
	case u.User != nil:
		return nil, errors.New("must not hold a user or password: it would end up in logs (use secret to sign requests)")
	}
	u.Fragment = "" // not sent
	return u, nil
}

func redactedURL(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}

func newSigner(secret string) (*standardwebhooks.Webhook, error) {
	if secret == "" {
		return nil, nil
	}
	coded, ok := strings.CutPrefix(secret, "whsec_")
	if !ok {
		return standardwebhooks.NewWebhookRaw([]byte(secret))
	}
	signer, err := standardwebhooks.NewWebhook(coded)
	if err != nil || coded == "" {
		return nil, errors.New("http: secret: the text after whsec_ is not base64")
	}
	return signer, nil
}

func newClient() *http.Client {
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy:                  nil, // not that of the environment
			DialContext:            dialer.DialContext,
			ForceAttemptHTTP2:      true,
			MaxIdleConnsPerHost:    64, // there is only one host
			IdleConnTimeout:        90 * time.Second,
			TLSHandshakeTimeout:    10 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
			DisableCompression:     true, // only the beginning of a response is read
		},
	}
}

func (h *handler) Handle(ctx context.Context, t *pawl.Task) error {
	body, err := action.FactsOf(t).JSON()
	if err != nil {
		return pawl.Permanent(fmt.Errorf("%s: %w", t.Object, err))
	}
	requestCtx, cancel := context.WithTimeoutCause(ctx, h.timeout, fmt.Errorf("no answer within %v (timeout)", h.timeout))
	defer cancel()
	var connected atomic.Bool
	traced := httptrace.WithClientTrace(requestCtx, &httptrace.ClientTrace{
		GetConn: func(string) { connected.Store(false) }, // called again if the server has closed an idle connection
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	req, err := h.request(traced, t, body)
	if err != nil {
		return pawl.Permanent(fmt.Errorf("%s: POST %s: %w", t.Object, h.redactedURL, err))
	}
	res, err := h.client.Do(req)
	if err != nil {
		err = requestError(requestCtx, err)
		if !connected.Load() && ctx.Err() == nil {
			err = unreachable(err)
		}
		return fmt.Errorf("%s: POST %s: %w", t.Object, h.redactedURL, err)
	}
	reply := h.readExcerpt(res, cancel)
	if err := resultOf(res, reply, time.Now()); err != nil {
		return fmt.Errorf("%s: POST %s: %w", t.Object, h.redactedURL, err)
	}
	return nil
}

func (h *handler) request(ctx context.Context, t *pawl.Task, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "pawl")
	req.Header.Set("Idempotency-Key", t.IdempotencyKey)
	req.Header.Set("Pawl-Fence", strconv.FormatInt(t.Fence, 10))
	req.Header.Set(standardwebhooks.HeaderWebhookID, t.IdempotencyKey)
	req.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	if t.Traceparent != "" {
		req.Header.Set("Traceparent", t.Traceparent)
	}
	if h.signer != nil {
		signature, err := h.signer.Sign(t.IdempotencyKey, now, body)
		if err != nil {
			return nil, err
		}
		req.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	}
	return req, nil
}

// requestError returns the printable reason why a request got no response, without the URL.
func requestError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	printable := &printableError{text: excerpt(err.Error()), err: err}
	// The resolver reports exhausted file descriptors only as temporary.
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsTemporary && !dns.IsNotFound {
		return pawl.Outage(printable)
	}
	return printable
}

type printableError struct {
	text string
	err  error
}

func (e *printableError) Error() string { return e.text }
func (e *printableError) Unwrap() error { return e.err }
