package webhooksource

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/pawlhq/pawl/source"
)

// When to post again: work in flight ends soon, a restart takes a while.
const (
	retryWhenFull   = time.Second
	retryWhenClosed = 5 * time.Second
)

// answer is what a request is told.
type response struct {
	status     int
	retryAfter time.Duration // Retry-After, if positive
	body       any           // as JSON
	closeConn  bool          // the request's body is read no further
}

// settledBody is the body of a 200.
type okBody struct {
	source.Verdicts
	Ignored int `json:"ignored"` // records that say nothing about content
}

// refusalBody is the body of everything else.
type errorBody struct {
	Error string `json:"error"`
}

func okResponse(v source.Verdicts, ignored int) response {
	return response{status: http.StatusOK, body: okBody{v, ignored}}
}

func errorResponse(status int, reason string) response {
	return response{status: status, body: errorBody{reason}}
}

// later asks for the same post after d, and never sooner than in a second.
func retryResponse(status int, reason string, d time.Duration) response {
	return response{status: status, retryAfter: max(d, time.Second), body: errorBody{reason}}
}

func (e *endpoint) respond(w http.ResponseWriter, a response) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if a.retryAfter > 0 {
		seconds := int64((a.retryAfter + time.Second - 1) / time.Second)
		h.Set("Retry-After", strconv.FormatInt(seconds, 10))
	}
	control := http.NewResponseController(w)
	if a.closeConn {
		// Otherwise the server waits for the body, both before and after its answer.
		h.Set("Connection", "close")
		_ = control.SetReadDeadline(time.Now())
	}
	switch a.status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", "Bearer")
	case http.StatusUnsupportedMediaType:
		h.Set("Accept-Encoding", "identity")
	}
	body, err := json.Marshal(a.body)
	if err != nil {
		http.Error(w, "cannot encode the response", http.StatusInternalServerError)
		return
	}
	// From here on the client is the slow one. An answer that does not get
	// through is a post that comes again: harmless, and not worth a line.
	_ = control.SetWriteDeadline(time.Now().Add(e.limits.write))
	w.WriteHeader(a.status)
	_, _ = w.Write(append(body, '\n'))
}
