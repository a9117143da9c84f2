package webhooksource

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/pawlhq/pawl/source"
)

// A full sink has room again soon; a restart takes longer.
const (
	retryWhenFull   = time.Second
	retryWhenClosed = 5 * time.Second
)

type response struct {
	status     int
	retryAfter time.Duration
	body       any
	closeConn  bool // without reading the rest of the body
}

type okBody struct {
	source.Verdicts
	Ignored int `json:"ignored"` // do not change an object's content
}

type errorBody struct {
	Error string `json:"error"`
}

func okResponse(v source.Verdicts, ignored int) response {
	return response{status: http.StatusOK, body: okBody{v, ignored}}
}

func errorResponse(status int, reason string) response {
	return response{status: status, body: errorBody{reason}}
}

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
		// Otherwise the server would wait for the rest of the body, both before and after its
		// response.
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
	// Without the response the sender posts again, which is harmless.
	_ = control.SetWriteDeadline(time.Now().Add(e.limits.write))
	w.WriteHeader(a.status)
	_, _ = w.Write(append(body, '\n'))
}
