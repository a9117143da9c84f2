package webhooksource

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/logthrottle"
	"github.com/pawlhq/pawl/source"
)

type endpoint struct {
	*Source
	stopping <-chan struct{}
	sink     source.Sink
	conns    *connTracker
}

// HEAD needs no authentication: stores use it to check that the target is up, and the response has no body.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path != e.cfg.Path:
		e.respond(w, errorResponse(http.StatusNotFound, "no such path"))
	case r.Method == http.MethodPost:
		e.respond(w, e.post(r))
	case r.Method == http.MethodHead:
		w.WriteHeader(http.StatusOK)
	default:
		w.Header().Set("Allow", "HEAD, POST")
		e.respond(w, errorResponse(http.StatusMethodNotAllowed, "send notifications with POST"))
	}
}

func (e *endpoint) post(r *http.Request) response {
	batch, rejected := e.readBatch(r)
	if rejected.status != 0 {
		return rejected
	}
	if batch.Test {
		e.cfg.Logger.InfoContext(r.Context(), "received a test message or a subscription request; confirm a subscription at the sender", "from", r.RemoteAddr)
	}
	if len(batch.Events) == 0 {
		return okResponse(source.Verdicts{}, batch.Ignored)
	}
	return e.deliver(r, batch)
}

// The body counts toward the limit until it is parsed.
func (e *endpoint) readBatch(r *http.Request) (event.Batch, response) {
	defer e.conns.release(r)
	body, rejected := e.authenticate(r)
	if rejected.status != 0 {
		rejected.closeConn = true
		return event.Batch{}, rejected
	}
	batch, err := event.Parse(body, e.cfg.Dialect)
	if err != nil {
		return event.Batch{}, e.parseErrorResponse(r, body, err)
	}
	return batch, response{}
}

// The sender is authenticated, so the log may contain the beginning of the notification.
func (e *endpoint) parseErrorResponse(r *http.Request, body []byte, err error) response {
	status, warning := http.StatusBadRequest, e.warnings.malformed
	switch {
	case errors.Is(err, event.ErrTooLarge):
		status, warning = http.StatusRequestEntityTooLarge, e.warnings.tooLarge
	case errors.Is(err, event.ErrUnknownDialect):
		warning = e.warnings.unknownDialect
	}
	// Errors of package event are short and quoted.
	return e.rejectUnreadable(r, warning, status, err.Error(), "bytes", len(body), "payload", excerpt(body))
}

func (e *endpoint) rejectUnreadable(r *http.Request, warning *logthrottle.Warning, status int, reason string, args ...any) response {
	args = append([]any{"from", r.RemoteAddr, "status", status, "reason", reason}, args...)
	warning.Log(r.Context(), "rejected a notification that cannot be read", args...)
	e.reject(source.Unreadable)
	return errorResponse(status, reason)
}

func (e *endpoint) authenticate(r *http.Request) ([]byte, response) {
	// A web page in a browser on this machine can reach the endpoint, even under a host name of its own.
	// Without a token, the Host header must therefore name this machine.
	if err := crossOrigin.Check(r); err != nil || e.auth.allowsAll() && !namesLoopback(r.Host) {
		const reason = "requests from web pages of another origin are not accepted"
		e.reject(source.Unauthorized)
		e.warnings.crossOrigin.Log(r.Context(), "rejected a notification: "+reason, "from", r.RemoteAddr, "status", http.StatusForbidden)
		return nil, errorResponse(http.StatusForbidden, reason)
	}
	byHeader := e.auth.checkHeader(r.Header)
	if byHeader && !e.auth.allowsAll() {
		e.conns.markAuthenticated(r)
	}
	if !byHeader && !e.auth.hasSignature(r.Header) {
		return nil, e.unauthorized(r)
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, e.rejectUnreadable(r, e.warnings.compressed, http.StatusUnsupportedMediaType,
			"compressed notifications are not accepted: send plain JSON", "content_length", r.ContentLength)
	}
	body, rejected := e.readBody(r)
	if rejected.status != 0 {
		return nil, rejected
	}
	if !byHeader && !e.auth.checkSignature(r.Header, body) {
		return nil, e.unauthorized(r)
	}
	e.conns.markAuthenticated(r)
	return body, response{}
}

func (e *endpoint) unauthorized(r *http.Request) response {
	e.reject(source.Unauthorized)
	e.warnings.unauthorized.Log(r.Context(), "rejected a notification: the token or signature is wrong or missing", "from", r.RemoteAddr, "status", http.StatusUnauthorized)
	return errorResponse(http.StatusUnauthorized, "unauthorized")
}

var crossOrigin = http.NewCrossOriginProtection()

var errBodiesFull = errors.New("too many unfinished notifications at a time")

// The sender may not be authenticated yet, so nothing of the body is logged.
func (e *endpoint) readBody(r *http.Request) ([]byte, response) {
	tooLarge := func() response {
		reason := fmt.Sprintf("the notification is larger than %d bytes", event.MaxPayload)
		return e.rejectUnreadable(r, e.warnings.tooLarge, http.StatusRequestEntityTooLarge, reason, "content_length", r.ContentLength)
	}
	if r.ContentLength > event.MaxPayload {
		return nil, tooLarge()
	}
	body, err := io.ReadAll(io.LimitReader(e.conns.countedBody(r), event.MaxPayload+1))
	switch {
	case errors.Is(err, errBodiesFull):
		return nil, retryResponse(http.StatusTooManyRequests, err.Error(), retryWhenFull)
	case err != nil:
		return nil, e.rejectUnreadable(r, e.warnings.cutOff, http.StatusBadRequest, "the request body ended early", "bytes", len(body))
	case len(body) > event.MaxPayload:
		return nil, tooLarge()
	}
	return body, response{}
}

// If the client disconnects or the wait takes too long, the sink keeps the events.
func (e *endpoint) deliver(r *http.Request, batch event.Batch) response {
	select {
	case <-e.stopping: // a repeated notification must not start new work
		return retryResponse(http.StatusServiceUnavailable, source.ErrClosed.Error(), retryWhenClosed)
	default:
	}
	done := make(chan source.Outcome, 1)
	err := e.sink.TryDeliver(source.Delivery{
		Events:         batch.Events,
		Message:        source.Message{System: "webhook", Destination: e.cfg.Path, Traceparent: r.Header.Get("Traceparent")},
		TrustSequencer: e.cfg.TrustSequencer,
		Done:           func(o source.Outcome) { done <- o },
	})
	switch {
	case errors.Is(err, source.ErrFull):
		return retryResponse(http.StatusTooManyRequests, err.Error(), retryWhenFull)
	case err != nil:
		return retryResponse(http.StatusServiceUnavailable, source.ErrClosed.Error(), retryWhenClosed)
	}
	timeout := time.NewTimer(e.limits.outcome)
	defer timeout.Stop()
	select {
	case <-timeout.C:
		e.warnings.timedOut.Log(r.Context(), "a notification was not acknowledged in time: check that the ledger responds", "from", r.RemoteAddr,
			"events", len(batch.Events), "waited", e.limits.outcome)
		return retryResponse(http.StatusServiceUnavailable, "not acknowledged in time: post it again", retryWhenClosed)
	case o := <-done:
		if o.Ack {
			return okResponse(o.Verdicts, batch.Ignored)
		}
		e.warnings.notAcknowledged.Log(r.Context(), "a notification was not acknowledged", "from", r.RemoteAddr,
			"events", len(batch.Events), "error", o.Err)
		return retryResponse(http.StatusServiceUnavailable, "not acknowledged: post it again", o.RetryAfter)
	case <-r.Context().Done():
		return retryResponse(http.StatusServiceUnavailable, "not acknowledged: post it again", retryWhenClosed)
	}
}
