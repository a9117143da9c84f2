package filesapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/files"
)

// problem is an error response as in RFC 9457.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
}

func (p *problem) Error() string { return p.Title + ": " + p.Detail }

func newProblem(status int, detail string) *problem {
	return &problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail}
}

// explain hides internal details from the client.
func explain(err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	switch {
	case errors.Is(err, files.ErrNotFound):
		return newProblem(http.StatusNotFound, "no such file")
	case errors.Is(err, files.ErrQuota):
		return newProblem(http.StatusForbidden, "the entity's quota is exhausted")
	case errors.Is(err, files.ErrOpenUploads):
		return newProblem(http.StatusTooManyRequests, "the entity has too many open uploads: complete some of them, or wait until they expire")
	case errors.Is(err, files.ErrKeyUsed):
		return newProblem(http.StatusConflict, files.ErrKeyUsed.Error())
	case errors.Is(err, files.ErrState):
		return newProblem(http.StatusConflict, err.Error())
	case errors.Is(err, files.ErrInterrupted):
		return newProblem(http.StatusBadGateway, files.ErrInterrupted.Error())
	case errors.Is(err, errInvalidToken):
		return newProblem(http.StatusUnauthorized, errInvalidToken.Error())
	case errors.Is(err, files.ErrUnclear):
		return newProblem(http.StatusServiceUnavailable, files.ErrUnclear.Error())
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return newProblem(http.StatusServiceUnavailable, "the request timed out: try again")
	}
	return newProblem(http.StatusServiceUnavailable, "the service is unavailable: try again")
}

func (p *problem) write(w http.ResponseWriter) {
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	switch p.Status {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusInsufficientStorage:
		w.Header().Set("Retry-After", "1")
	}
	if p.Status == http.StatusRequestTimeout {
		w.Header().Set("Connection", "close")
	}
	text, _ := encode(p) // never fails for strings and numbers
	respond(w, p.Status, "application/problem+json", text)
}

func encode(body any) ([]byte, error) {
	return json.Marshal(body, jsontext.AllowInvalidUTF8(true))
}

func respond(w http.ResponseWriter, status int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout)) // ignored if unsupported
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may have disconnected
}
