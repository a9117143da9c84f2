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
	fullRetry   = time.Second
	closedRetry = 5 * time.Second
)

// answer is what a request is told.
type answer struct {
	status int
	retry  time.Duration // Retry-After, if positive
	body   any           // as JSON
	hangUp bool          // the request's body is read no further
}

// settledBody is the body of a 200.
type settledBody struct {
	source.Verdicts
	Ignored int `json:"ignored"` // records that say nothing about content
}

// refusalBody is the body of everything else.
type refusalBody struct {
	Error string `json:"error"`
}

func settled(v source.Verdicts, ignored int) answer {
	return answer{status: http.StatusOK, body: settledBody{v, ignored}}
}

func refusal(status int, reason string) answer {
	return answer{status: status, body: refusalBody{reason}}
}

// later asks for the same post after d, and never sooner than in a second.
func later(status int, reason string, d time.Duration) answer {
	return answer{status: status, retry: max(d, time.Second), body: refusalBody{reason}}
}

func (e *endpoint) answer(w http.ResponseWriter, a answer) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if a.retry > 0 {
		seconds := int64((a.retry + time.Second - 1) / time.Second)
		h.Set("Retry-After", strconv.FormatInt(seconds, 10))
	}
	control := http.NewResponseController(w)
	if a.hangUp {
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
		http.Error(w, "cannot write the answer", http.StatusInternalServerError)
		return
	}
	// From here on the client is the slow one. An answer that does not get
	// through is a post that comes again: harmless, and not worth a line.
	_ = control.SetWriteDeadline(time.Now().Add(e.limits.write))
	w.WriteHeader(a.status)
	_, _ = w.Write(append(body, '\n'))
}
