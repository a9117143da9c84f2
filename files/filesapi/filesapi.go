// Package filesapi serves package files over HTTP: as REST (openapi.yaml) and GraphQL
// (schema.graphql). A file outside the scopes of the request's token looks like a missing file.
package filesapi

import (
	"context"
	_ "embed"
	"errors"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/graph-gophers/graphql-go"
	"github.com/hashicorp/golang-lru/v2"

	"github.com/pawlhq/pawl/files"
)

//go:embed openapi.yaml
var openAPI []byte

// Config configures a handler. Files, Tokens, Cursors and Logger are required.
type Config struct {
	Files  *files.Service
	Tokens *Tokens
	// Cursors is the secret that signs cursors. It needs at least 32 random bytes, equal in all
	// processes.
	Cursors []byte
	// MaxSize is the maximum size of a file in bytes; default 5 GiB. Files above 5 GiB need a
	// multipart upload.
	MaxSize int64
	// Spool is the folder for bodies of POST /v1/files; default the system's temporary folder.
	Spool string
	// Rate is the requests per second of each subject; default 50. Burst is the maximum burst;
	// default 100.
	Rate   float64
	Burst  int
	Logger *slog.Logger
	// Observe is called after each request. The route is a pattern such as "GET /v1/files/{id}", or
	// empty if no path matches. Optional.
	Observe func(route string, status int, took time.Duration)
}

type server struct {
	Config
	schema    *graphql.Schema
	estimates *graphql.Schema
	cursors   cursors
	limits    *lru.Cache[string, *limit]
	spooling  sync.Mutex // guards spooled, here and in limits
	spooled   int64      // bytes on disk that are reserved for bodies
}

const maxSubjects = 10_000

// New returns the handler.
func New(c Config) (http.Handler, error) {
	if len(c.Cursors) < 32 {
		return nil, errors.New("filesapi: the secret of cursors must have 32 bytes or more")
	}
	if c.MaxSize == 0 {
		c.MaxSize = maxPut
	}
	if c.Rate == 0 {
		c.Rate, c.Burst = 50, 100
	}
	limits, err := lru.New[string, *limit](maxSubjects)
	if err != nil {
		return nil, err
	}
	s := &server{Config: c, cursors: cursors{c.Cursors}, limits: limits}
	if s.schema, err = s.newSchema(); err != nil {
		return nil, err
	}
	if s.estimates, err = s.newSchema(graphql.Tracer(estimator{})); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/uploads", s.handle("upload", withTimeout(s.upload)))
	mux.HandleFunc("POST /v1/uploads/parts", s.handle("upload parts", withTimeout(s.uploadParts)))
	mux.HandleFunc("POST /v1/files", s.handle("store", s.storeFile))
	mux.HandleFunc("GET /v1/files/{id}", s.handle("get", withTimeout(s.fileHandler(s.getFile))))
	mux.HandleFunc("DELETE /v1/files/{id}", s.handle("delete", withTimeout(s.fileHandler(s.deleteFile))))
	mux.HandleFunc("POST /v1/files/{id}/complete", s.handle("complete", withTimeout(s.fileHandler(s.completeFile))))
	mux.HandleFunc("POST /v1/files/{id}/undelete", s.handle("undelete", withTimeout(s.fileHandler(s.undeleteFile))))
	mux.HandleFunc("GET /v1/entities/{entity}/files", s.handle("list", withTimeout(s.list)))
	mux.HandleFunc("DELETE /v1/entities/{entity}/files", s.handle("delete all", withTimeout(s.deleteAll)))
	mux.HandleFunc("POST /graphql", s.handle("graphql", withTimeout(s.graphql)))
	mux.HandleFunc("GET /openapi.yaml", document("application/yaml", openAPI))
	mux.HandleFunc("GET /schema.graphql", document("text/plain; charset=utf-8", []byte(schema)))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { s.notFound(mux, w, r) })
	return s.observe(rejectUncleanPaths(mux), mux), nil
}

// rejectUncleanPaths responds with 404 to paths that the multiplexer would redirect.
func rejectUncleanPaths(mux http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path.Clean(r.URL.Path) != r.URL.Path {
			unknownPath().write(w)
			return
		}
		mux.ServeHTTP(w, limitBodyRate(w, r))
	})
}

func unknownPath() *problem {
	return newProblem(http.StatusNotFound, "no such path: see /openapi.yaml")
}

func document(contentType string, text []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(text)
	}
}

func (s *server) notFound(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{http.MethodDelete, http.MethodGet, http.MethodPost} {
		if _, pattern := mux.Handler(&http.Request{Method: method, URL: r.URL, Host: r.Host}); pattern != "/" && pattern != "" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		unknownPath().write(w)
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	newProblem(http.StatusMethodNotAllowed, "this path supports "+strings.Join(allowed, ", ")).write(w)
}

type request struct {
	*http.Request
	*operation
	w http.ResponseWriter
}

type answer struct {
	status int
	body   any
}

const maxAnswerSize = 8 << 20

func (s *server) handle(name string, do func(*request) (*answer, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		lists := &listSlot{}
		defer lists.release()
		r = r.WithContext(context.WithValue(r.Context(), listSlotKey{}, lists))
		q := &request{r, &operation{name: name, subject: &Subject{}}, w}
		var a *answer
		var body []byte
		p := s.run(r.Context(), q.operation, func() (int, error) {
			subject, err := s.Tokens.Verify(r)
			if err != nil {
				return 0, err
			}
			q.subject = subject
			if err := s.limit(subject).allow(1); err != nil {
				return 0, err
			}
			if a, err = do(q); err != nil {
				return 0, err
			}
			if body, err = encode(a.body); err == nil && len(body) > maxAnswerSize {
				err = newProblem(http.StatusBadRequest, "the response would exceed 8 MiB: request less at a time")
			}
			return a.status, err
		})
		if p != nil {
			p.write(w)
			return
		}
		respond(w, a.status, "application/json", body)
	}
}

// requestTimeout does not limit POST /v1/files, whose duration depends on the client.
const requestTimeout = 30 * time.Second

func withTimeout(do func(*request) (*answer, error)) func(*request) (*answer, error) {
	return func(q *request) (*answer, error) {
		ctx, cancel := context.WithTimeout(q.Context(), requestTimeout)
		defer cancel()
		q.Request = q.WithContext(ctx)
		return do(q)
	}
}

func (q *request) param(name string) (value string, given bool, err error) {
	query, err := url.ParseQuery(q.URL.RawQuery)
	if err != nil {
		return "", false, newProblem(http.StatusBadRequest, "the query string of the URL is invalid")
	}
	switch values := query[name]; len(values) {
	case 0:
		return "", false, nil
	case 1:
		return values[0], true, nil
	}
	return "", false, newProblem(http.StatusBadRequest, "the parameter "+name+" is given more than once")
}

const maxBodySize = 16 << 10

func (q *request) decode(into any, limit int64) error {
	if media, _, err := mime.ParseMediaType(q.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return newProblem(http.StatusUnsupportedMediaType, "the body must be application/json")
	}
	body := http.MaxBytesReader(q.w, q.Body, limit)
	if err := json.UnmarshalRead(body, into, json.RejectUnknownMembers(true)); err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return newProblem(http.StatusRequestEntityTooLarge, "the body is longer than "+strconv.FormatInt(limit>>10, 10)+" KiB")
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return errSlow
		}
		return newProblem(http.StatusBadRequest, "invalid request body: "+err.Error())
	}
	return nil
}
