package filesapi_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestDocumentNotices: the client of TestDocument notices services that do not do as
// their document says.
func TestDocumentNotices(t *testing.T) {
	s := newSurface(t)
	right := must(url.Parse(s.url))
	answer := func(change func(r *recorded)) http.HandlerFunc {
		return func(w http.ResponseWriter, q *http.Request) {
			a := relay(t, right, q)
			change(a)
			a.write(w)
		}
	}
	// lax lets a request through that the document forbids.
	lax := func(change func(q *http.Request, body []byte) []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, q *http.Request) {
			body := must(io.ReadAll(q.Body))
			q.Body = io.NopCloser(bytes.NewReader(change(q, body)))
			relay(t, right, q).write(w)
		}
	}
	for name, test := range map[string]struct {
		serve http.HandlerFunc
		want  string
	}{
		"a 500": {answer(func(a *recorded) {
			if a.path == "/v1/entities/f/files" && a.method == "DELETE" {
				a.status = http.StatusInternalServerError
			}
		}), "the service has failed"},
		"a status that is not listed": {answer(func(a *recorded) {
			if a.method == "DELETE" && a.status == http.StatusOK {
				a.status = http.StatusAccepted
			}
		}), "the answer is not in the document"},
		"a field that is not described": {answer(func(a *recorded) {
			a.body = bytes.Replace(a.body, []byte(`"state":"deleted"`), []byte(`"state":"deleted","key":"files/x"`), 1)
		}), "the answer is not in the document"},
		"a field of another type": {answer(func(a *recorded) {
			a.body = bytes.Replace(a.body, []byte(`"size":5,`), []byte(`"size":"5",`), 1)
		}), "the answer is not in the document"},
		"an error in plain text": {answer(func(a *recorded) {
			if a.status == http.StatusConflict {
				a.header.Set("Content-Type", "text/plain")
			}
		}), "no problem, but text/plain"},
		"a stack trace": {answer(func(a *recorded) {
			a.body = bytes.Replace(a.body, []byte(`"no such file"`), []byte(`"goroutine 1 [running]"`), 1)
		}), "it tells of the inside"},
		"a size that need not be there": {lax(func(_ *http.Request, body []byte) []byte {
			if bytes.HasPrefix(body, []byte(`{"contentType"`)) && !bytes.Contains(body, []byte(`"size"`)) {
				return append([]byte(`{"size":5,`), body[1:]...)
			}
			return body
		}), "the document forbids it"},
		"an odd limit": {lax(func(q *http.Request, body []byte) []byte {
			query := q.URL.Query()
			query.Del("limit")
			q.URL.RawQuery = query.Encode()
			return body
		}), "the document forbids it"},
		"the cursor of another list": {lax(func(q *http.Request, body []byte) []byte {
			if after := q.URL.Query().Get("after"); after != "" && strings.HasSuffix(q.URL.Path, "x/files") {
				q.URL.Path, q.URL.RawQuery = "/v1/entities/e/files", ""
			}
			return body
		}), "the cursor is not one of this list"},
		"a token that has expired": {lax(func(q *http.Request, body []byte) []byte {
			if made := tokens(t); q.Header.Get("Authorization") == "Bearer "+made["expired"] {
				q.Header.Set("Authorization", "Bearer "+made["all"])
			}
			return body
		}), "the token does not hold"},
		"scopes that cover all": {lax(func(q *http.Request, body []byte) []byte {
			if made := tokens(t); q.Header.Get("Authorization") == "Bearer "+made["stranger"] {
				q.Header.Set("Authorization", "Bearer "+made["all"])
			}
			return body
		}), "the token does not cover it"},
		"a service that refuses too much": {lax(func(_ *http.Request, body []byte) []byte {
			return bytes.Replace(body, []byte(`"size":44`), []byte(`"size":-1`), 1)
		}), "the document allows it"},
	} {
		t.Run(name, func(t *testing.T) {
			web := httptest.NewServer(test.serve)
			defer web.Close()
			wrong := *s
			site := *s.site
			site.url = web.URL
			wrong.site = &site
			walks := rapid.Custom(func(r *rapid.T) string {
				if err := wrong.walk(r); err != nil {
					return err.Error()
				}
				return ""
			})
			for seed := 1; ; seed++ {
				got := walks.Example(seed)
				if got != "" || seed == 100 {
					t.Logf("walk %d", seed)
					if !strings.Contains(got, test.want) {
						t.Errorf("%q: want %q", got, test.want)
					}
					return
				}
			}
		})
	}
}

// recorded is an answer that may be changed.
type recorded struct {
	method, path string
	status       int
	header       http.Header
	body         []byte
}

func (a *recorded) write(w http.ResponseWriter) {
	for name, values := range a.header {
		w.Header()[name] = values
	}
	w.Header().Del("Content-Length")
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body)
}

// relay asks the right service.
func relay(t *testing.T, right *url.URL, q *http.Request) *recorded {
	a := &recorded{method: q.Method, path: q.URL.Path}
	r := q.Clone(q.Context())
	r.URL.Scheme, r.URL.Host, r.RequestURI, r.ContentLength = right.Scheme, right.Host, "", -1
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Error(err)
		return a
	}
	defer func() { _ = resp.Body.Close() }()
	a.status, a.header, a.body = resp.StatusCode, resp.Header, must(io.ReadAll(resp.Body))
	return a
}
