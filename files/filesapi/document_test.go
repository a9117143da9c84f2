package filesapi_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	validation "github.com/pb33f/libopenapi-validator/errors"
	v3 "github.com/pb33f/libopenapi/datamodel/high/v3"
	"pgregory.net/rapid"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/files/filesapi"
	"github.com/pawlhq/pawl/store/sqlite"
)

var requests = flag.Int("requests", 1000, "requests that TestDocument makes, and TestSchema half as many")

// walkSteps is how many requests a walk makes; each walk has an index of its own.
const walkSteps = 100

// described is one operation of openapi.yaml.
type described struct {
	*v3.Operation
	method, path string
	item         *v3.PathItem
	params       []*v3.Parameter
}

func (d *described) String() string { return d.OperationId }

// surface is a service, and what openapi.yaml says of it.
type surface struct {
	*site
	operations []*described
	// seen counts answers, by operation and status.
	seen map[string]map[int]int
}

func newSurface(t *testing.T) *surface {
	x := serve(t, func(c *filesapi.Config) {
		c.Rate, c.Burst, c.Logger = 1e9, 1e9, slog.New(slog.DiscardHandler)
	})
	x.files.Limit = limit(3)
	s := &surface{site: x, seen: map[string]map[int]int{}}
	for path, item := range x.doc.Paths.PathItems.FromOldest() {
		for method, op := range item.GetOperations().FromOldest() {
			s.operations = append(s.operations, &described{op, strings.ToUpper(method), path, item, slices.Concat(item.Parameters, op.Parameters)})
			s.seen[op.OperationId] = map[int]int{}
		}
	}
	return s
}

// report logs how often each operation answered with which status, and wants each to
// have succeeded.
func (s *surface) report(t *testing.T) {
	total := 0
	for name, statuses := range s.seen {
		good := 0
		for status, n := range statuses {
			total += n
			if status < 300 {
				good += n
			}
		}
		if good == 0 {
			t.Errorf("no %s succeeded: %v", name, statuses)
		}
		t.Logf("%-10s %v", name, statuses)
	}
	t.Logf("%d requests", total)
}

// TestDocument: whatever a client makes of openapi.yaml, well or badly, the service
// answers as the document says, and takes no less and no more than it.
//
//	go test ./files/filesapi -run TestDocument -requests 200000 -v
func TestDocument(t *testing.T) {
	s := newSurface(t)
	checks(t, *requests/walkSteps)
	rapid.Check(t, func(r *rapid.T) {
		if err := s.walk(r); err != nil {
			r.Fatal(err)
		}
	})
	s.report(t)
}

// checks sets how many walks rapid plays.
func checks(t *testing.T, n int) {
	name := "rapid.checks"
	was := flag.Lookup(name).Value.String()
	t.Cleanup(func() { _ = flag.Set(name, was) }) // it was there
	if err := flag.Set(name, fmt.Sprint(max(n, 1))); err != nil {
		t.Fatal(err)
	}
}

// walk makes requests one after the other, which use what earlier ones answered.
func (s *surface) walk(r *rapid.T) error {
	index, err := sqlite.Open(s.t.Context(), filepath.Join(s.t.TempDir(), "files.db"))
	if err != nil {
		return err
	}
	defer func() { _ = index.Close() }() // of a walk that is over
	s.files.Index = files.NewIndex(index)
	w := &walk{surface: s, t: r, known: map[string][]string{}}
	for range walkSteps {
		if err := w.step(); err != nil {
			return err
		}
	}
	return nil
}

// walk is what one client knows.
type walk struct {
	*surface
	t *rapid.T
	// known are texts that answers had, by the name of their property.
	known map[string][]string
	// pages are lists that have more, and where.
	pages []struct{ entity, next string }
	// sends are uploads that have begun, with their bytes.
	sends []send
}

// send is an upload that has begun.
type send struct {
	signed map[string]any
	body   string
}

// step makes a request, or changes the bucket behind the service.
func (w *walk) step() error {
	switch n := rapid.IntRange(0, 19).Draw(w.t, "step"); {
	case n == 0 && len(w.known["fileId"]) > 0: // the bucket loses an object
		return w.files.Objects.Remove(w.site.t.Context(), w.files.Prefix+w.pick("fileId"))
	case n <= 2 && len(w.sends) > 0:
		last := w.sends[len(w.sends)-1]
		w.sends = w.sends[:len(w.sends)-1]
		if status, answer := w.send(last.signed, last.body); status != http.StatusOK && status != http.StatusPreconditionFailed {
			return fmt.Errorf("the store does not take %v: %d %s", last.signed, status, answer)
		}
		return nil
	}
	op := rapid.SampledFrom(w.operations).Draw(w.t, "operation")
	if op.OperationId == "deleteFiles" && rapid.IntRange(0, 3).Draw(w.t, "another") > 0 { // or lists stay short
		op = rapid.SampledFrom(w.operations).Draw(w.t, "operation")
	}
	q := w.request(op)
	_, text, err := w.exchange(q)
	if err != nil || text == nil {
		return err
	}
	return w.learn(q, text)
}

// pick returns a text that an answer had, mostly one of the last.
func (w *walk) pick(name string) string {
	known := w.known[name]
	if rapid.IntRange(0, 3).Draw(w.t, "old") > 0 {
		known = known[max(0, len(known)-5):]
	}
	return rapid.SampledFrom(known).Draw(w.t, name)
}

// exchange sends a request, judges the answer and returns its status and body. Of
// what net/http does not send there is none.
func (w *walk) exchange(q *drawn) (int, []byte, error) {
	r, err := q.build(w.site)
	if err != nil {
		return 0, nil, nil //nolint:nilerr // as it says
	}
	allowed, complaints := w.allows(q, r)
	r.Body = io.NopCloser(bytes.NewReader(q.body))
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, fmt.Errorf("%s: %w", q, err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil, fmt.Errorf("%s: %w", q, err)
	}
	if q.fault == "" && !allowed {
		return 0, nil, fmt.Errorf("%s is made as the document says, and it forbids it: %v", q, complaints[0])
	}
	resp.Body = io.NopCloser(bytes.NewReader(text))
	if err := w.judge(q, r, resp, text, allowed); err != nil {
		return 0, nil, fmt.Errorf("%s: %d %.1000s: %w", q, resp.StatusCode, text, err)
	}
	w.seen[q.op.OperationId][resp.StatusCode]++
	return resp.StatusCode, text, nil
}

// allows reports whether the document has a request.
func (w *walk) allows(q *drawn, r *http.Request) (bool, []*validation.ValidationError) {
	const kind = "Content-Type"
	if q.op.OperationId == "storeFile" && r.Header.Get(kind) == "" { // as its description says
		r.Header.Set(kind, "application/octet-stream")
		defer r.Header.Del(kind)
	}
	allowed, complaints := w.rules.ValidateHttpRequestSyncWithPathItem(r, q.op.item, q.op.path)
	return allowed && q.method == q.op.method, complaints
}

// judge holds an answer against the document.
func (w *walk) judge(q *drawn, r *http.Request, resp *http.Response, text []byte, allowed bool) error {
	status := resp.StatusCode
	switch {
	case status >= 500:
		return errors.New("the service has failed")
	case !json.Valid(text): // the validator takes an empty body for a good one
		return errors.New("the answer is no JSON")
	case status >= 400:
		if err := isProblem(resp, text); err != nil {
			return err
		}
	}
	if q.method != q.op.method {
		return nil // the document does not have it
	}
	if ok, errs := w.rules.GetResponseBodyValidator().ValidateResponseBodyWithPathItem(r, resp, q.op.item, q.op.path); !ok {
		return fmt.Errorf("the answer is not in the document: %v", errs[0])
	}
	switch {
	case !q.lets && status != http.StatusUnauthorized:
		return errors.New("the token does not hold")
	case !q.covers && status < 300 && q.op.OperationId != "graphql":
		return errors.New("the token does not cover it, and it is done")
	case !allowed && status < 300:
		return errors.New("the document forbids it, and it is done")
	case q.forged && status != http.StatusBadRequest:
		return errors.New("the cursor is not one of this list")
	case q.fault == "" && !q.mayBe(status):
		return errors.New("the document allows it, and it is refused")
	}
	return nil
}

// isProblem wants an error to be as RFC 9457 has it.
func isProblem(resp *http.Response, text []byte) error {
	var p struct {
		Title, Type string
		Status      int
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return err
	}
	if ct := resp.Header.Get("Content-Type"); ct != "application/problem+json" || p.Status != resp.StatusCode || p.Title == "" {
		return fmt.Errorf("no problem, but %s %+v", ct, p)
	}
	if strings.Contains(string(text), "goroutine") || strings.Contains(string(text), "panic") {
		return errors.New("it tells of the inside")
	}
	return nil
}

// learn keeps what later requests may use.
func (w *walk) learn(q *drawn, text []byte) error {
	var got any
	if err := json.Unmarshal(text, &got); err != nil {
		return err
	}
	each(got, func(name string, v any) {
		if s, ok := v.(string); ok {
			w.known[name] = append(w.known[name], s)
		}
	})
	answer, _ := got.(map[string]any)
	if next, ok := answer["next"].(string); ok {
		w.pages = append(w.pages, struct{ entity, next string }{q.in["entity"], next})
	}
	if parts, ok := answer["parts"].([]any); ok {
		answer["upload"] = parts[0]
	}
	if answer["upload"] != nil && q.sends != "" {
		w.sends = append(w.sends, send{answer, q.sends})
	}
	return nil
}

// each calls a function with each member of each object.
func each(v any, do func(name string, v any)) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(keysOf(v)) {
			do(name, v[name])
			each(v[name], do)
		}
	case []any:
		for _, e := range v {
			each(e, do)
		}
	}
}
