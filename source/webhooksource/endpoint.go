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

// endpoint answers requests.
type endpoint struct {
	*Source
	ended <-chan struct{} // closed when the source is to end
	sink  source.Sink
	conns *conns
}

// ServeHTTP sorts requests by path and method. HEAD tells a store that probes
// its target that someone is there, and needs no authorization: it says nothing
// else.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path != e.cfg.Path:
		e.answer(w, refusal(http.StatusNotFound, "no such path"))
	case r.Method == http.MethodPost:
		e.answer(w, e.post(r))
	case r.Method == http.MethodHead:
		w.WriteHeader(http.StatusOK)
	default:
		w.Header().Set("Allow", "HEAD, POST")
		e.answer(w, refusal(http.StatusMethodNotAllowed, "notifications are posted"))
	}
}

// post takes one notification and returns the answer to it.
func (e *endpoint) post(r *http.Request) answer {
	batch, refused := e.take(r)
	if refused.status != 0 {
		return refused
	}
	if batch.Test {
		e.cfg.Logger.InfoContext(r.Context(), "a sender has introduced itself: if it is a subscription, confirm it there", "from", r.RemoteAddr)
	}
	if len(batch.Events) == 0 {
		return settled(source.Verdicts{}, batch.Ignored)
	}
	return e.deliver(r, batch)
}

// take reads a notification from someone who may post. Its body takes up room until
// it is parsed.
func (e *endpoint) take(r *http.Request) (event.Batch, answer) {
	defer e.conns.release(r)
	body, refused := e.admit(r)
	if refused.status != 0 {
		refused.hangUp = true
		return event.Batch{}, refused
	}
	batch, err := event.Parse(body, e.cfg.Dialect)
	if err != nil {
		return event.Batch{}, e.unreadable(r, body, err)
	}
	return batch, answer{}
}

// unreadable refuses a notification that came from someone who may post, so the
// log may show how it begins: the sender's owner finds it by that.
func (e *endpoint) unreadable(r *http.Request, body []byte, err error) answer {
	status, c := http.StatusBadRequest, e.log.malformed
	switch {
	case errors.Is(err, event.ErrTooLarge):
		status, c = http.StatusRequestEntityTooLarge, e.log.tooLarge
	case errors.Is(err, event.ErrUnknownDialect):
		c = e.log.unknown
	}
	// event keeps its errors short and quoted.
	return e.refuse(r, c, status, err.Error(), "bytes", len(body), "payload", excerpt(body))
}

// refuse logs why a notification is refused, and what else is known of it.
func (e *endpoint) refuse(r *http.Request, c *logthrottle.Warning, status int, reason string, args ...any) answer {
	args = append([]any{"from", r.RemoteAddr, "status", status, "reason", reason}, args...)
	c.Log(r.Context(), "a notification cannot be read and was refused", args...)
	return refusal(status, reason)
}

// admit reads the body of a request that may post.
func (e *endpoint) admit(r *http.Request) ([]byte, answer) {
	// A page in a browser on this machine can post here too; under a name of
	// its own that it lets point here, where nothing else proves the sender.
	if err := browsers.Check(r); err != nil || e.gate.open() && !namesLoopback(r.Host) {
		const reason = "a web page of another origin may not post notifications"
		e.log.foreign.Log(r.Context(), "a notification was refused: "+reason, "from", r.RemoteAddr, "status", http.StatusForbidden)
		return nil, refusal(http.StatusForbidden, reason)
	}
	admitted := e.gate.byHeader(r.Header)
	if admitted && !e.gate.open() {
		e.conns.admit(r)
	}
	if !admitted && !e.gate.signed(r.Header) {
		return nil, e.unauthorized(r)
	}
	if c := r.Header.Get("Content-Encoding"); c != "" && c != "identity" {
		return nil, e.refuse(r, e.log.compressed, http.StatusUnsupportedMediaType,
			"compressed notifications are not accepted: send plain JSON", "content_length", r.ContentLength)
	}
	body, refused := e.read(r)
	if refused.status != 0 {
		return nil, refused
	}
	if !admitted && !e.gate.bySignature(r.Header, body) {
		return nil, e.unauthorized(r)
	}
	e.conns.admit(r)
	return body, answer{}
}

func (e *endpoint) unauthorized(r *http.Request) answer {
	e.log.unauthorized.Log(r.Context(), "a notification was refused: the token or signature is wrong or missing", "from", r.RemoteAddr, "status", http.StatusUnauthorized)
	return refusal(http.StatusUnauthorized, "unauthorized")
}

var browsers = http.NewCrossOriginProtection()

// errCrowded: the bodies that are being read have as many bytes as they may.
var errCrowded = errors.New("too many notifications at a time")

// read reads a body of at most event.MaxPayload bytes. Who sent it may not be
// known yet, so none of it is logged.
func (e *endpoint) read(r *http.Request) ([]byte, answer) {
	tooLarge := func() answer {
		reason := fmt.Sprintf("a notification has at most %d bytes", event.MaxPayload)
		return e.refuse(r, e.log.tooLarge, http.StatusRequestEntityTooLarge, reason, "content_length", r.ContentLength)
	}
	if r.ContentLength > event.MaxPayload {
		return nil, tooLarge()
	}
	body, err := io.ReadAll(io.LimitReader(e.conns.body(r), event.MaxPayload+1))
	switch {
	case errors.Is(err, errCrowded):
		return nil, later(http.StatusTooManyRequests, err.Error(), fullRetry)
	case err != nil:
		return nil, e.refuse(r, e.log.cutOff, http.StatusBadRequest, "the request's body ended early", "bytes", len(body))
	case len(body) > event.MaxPayload:
		return nil, tooLarge()
	}
	return body, answer{}
}

// deliver hands the events over and waits for what becomes of them. When the
// client goes away meanwhile, or has waited for long, the sink keeps them all the
// same.
func (e *endpoint) deliver(r *http.Request, batch event.Batch) answer {
	select {
	case <-e.ended: // what is posted again must not begin anew
		return later(http.StatusServiceUnavailable, source.ErrClosed.Error(), closedRetry)
	default:
	}
	done := make(chan source.Outcome, 1)
	err := e.sink.TryDeliver(source.Delivery{
		Events:         batch.Events,
		TrustSequencer: e.cfg.TrustSequencer,
		Done:           func(o source.Outcome) { done <- o },
	})
	switch {
	case errors.Is(err, source.ErrFull):
		return later(http.StatusTooManyRequests, err.Error(), fullRetry)
	case err != nil:
		return later(http.StatusServiceUnavailable, source.ErrClosed.Error(), closedRetry)
	}
	late := time.NewTimer(e.limits.answer)
	defer late.Stop()
	select {
	case <-late.C:
		e.log.late.Log(r.Context(), "a notification was not acknowledged in time: does the ledger answer?", "from", r.RemoteAddr,
			"events", len(batch.Events), "waited", e.limits.answer)
		return later(http.StatusServiceUnavailable, "not settled in time: post it again", closedRetry)
	case o := <-done:
		if o.Ack {
			return settled(o.Verdicts, batch.Ignored)
		}
		e.log.open.Log(r.Context(), "a notification was not acknowledged", "from", r.RemoteAddr,
			"events", len(batch.Events), "error", o.Err)
		return later(http.StatusServiceUnavailable, "not settled: post it again", o.RetryAfter)
	case <-r.Context().Done():
		return later(http.StatusServiceUnavailable, "not settled: post it again", closedRetry)
	}
}
