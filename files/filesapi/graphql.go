package filesapi

import (
	"context"
	_ "embed"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/graph-gophers/graphql-go"
	gqlerrors "github.com/graph-gophers/graphql-go/errors"
	gqllog "github.com/graph-gophers/graphql-go/log"

	"github.com/pawlhq/pawl/files"
)

//go:embed schema.graphql
var schema string

const (
	// maxDepth is the depth of the path entity, files, edges, node, field.
	maxDepth = 5
	// maxSelections applies to a document, and again after fragments are expanded.
	maxSelections = 500
	// maxOverlaps limits the pairs of fields that validation compares for conflicts.
	maxOverlaps = 10_000
)

// Introspection is disabled because its queries can nest deeply.
func (s *server) newSchema(more ...graphql.SchemaOpt) (*graphql.Schema, error) {
	return graphql.ParseSchema(schema, &root{s}, append(more, graphql.UseFieldResolvers(), graphql.RestrictIntrospection(func(context.Context) bool { return false }),
		graphql.MaxDepth(maxDepth), graphql.MaxSelections(maxSelections), graphql.OverlapValidationLimit(maxOverlaps),
		graphql.PanicHandler(panics{}), graphql.Logger(gqllog.LoggerFunc(s.logPanic)))...)
}

type panics struct{}

func (panics) MakePanicError(ctx context.Context, _ any) *gqlerrors.QueryError {
	if e := budgetOf(ctx).estimate; e != nil {
		e.unreadable.Store(true)
	}
	return queryError(explain(nil))
}

func queryError(p *problem) *gqlerrors.QueryError {
	return &gqlerrors.QueryError{Message: p.Error(), Extensions: p.Extensions()}
}

func (s *server) logPanic(ctx context.Context, value any) {
	s.Logger.LogAttrs(ctx, slog.LevelError, "files: a resolver panicked", slog.Any("panic", value))
}

type graphqlJSON struct {
	Query         *string        `json:"query"`
	OperationName string         `json:"operationName"`
	Variables     map[string]any `json:"variables"`
	Extensions    jsontext.Value `json:"extensions"` // ignored; clients may send them
}

func (s *server) graphql(q *request) (a *answer, err error) {
	var g graphqlJSON
	if err := q.decode(&g, maxBodySize); err != nil {
		return nil, err
	}
	if g.Query == nil {
		return nil, newProblem(http.StatusBadRequest, "the body has no query")
	}
	if p := checkDocument(*g.Query); p != nil {
		return rejectedQuery(p), nil
	}
	defer func() { // the library panics for some literals
		if value := recover(); value != nil {
			s.logPanic(q.Context(), value)
			a, err = nil, errLiteral
		}
	}()
	e := &estimate{}
	ctx := context.WithValue(q.Context(), budgetKey{}, &budget{q.subject, e})
	got := s.estimates.Exec(ctx, *g.Query, g.OperationName, maps.Clone(g.Variables)) // Exec adds defaults
	switch {
	case e.unreadable.Load():
		return nil, errLiteral
	case len(got.Errors) > 0:
		return &answer{http.StatusOK, &resultJSON{Errors: got.Errors}}, nil
	case string(got.Data) == "{}":
		return nil, newProblem(http.StatusBadRequest, "introspection is disabled: see /schema.graphql")
	case e.cost() > maxCost:
		return rejectedQuery(newProblem(http.StatusBadRequest, "the query is too expensive: split it into several requests")), nil
	}
	ctx = context.WithValue(q.Context(), budgetKey{}, &budget{subject: q.subject})
	got = s.schema.Exec(ctx, *g.Query, g.OperationName, g.Variables)
	return &answer{http.StatusOK, &resultJSON{jsontext.Value(got.Data), got.Errors}}, nil
}

// The library does not detect all invalid literals.
var errLiteral = newProblem(http.StatusBadRequest, "invalid query: a number is too large, or a string is malformed")

func rejectedQuery(p *problem) *answer {
	return &answer{http.StatusOK, &resultJSON{Errors: []*gqlerrors.QueryError{queryError(p)}}}
}

// Data is absent if nothing was executed.
type resultJSON struct {
	Data   jsontext.Value          `json:"data,omitzero"`
	Errors []*gqlerrors.QueryError `json:"errors,omitempty"`
}

type budgetKey struct{}

type budget struct {
	subject  *Subject
	estimate *estimate // set during an estimate; nil: the resolvers run
}

func budgetOf(ctx context.Context) *budget { return ctx.Value(budgetKey{}).(*budget) }

// resolve runs one operation of a query. It counts against the subject's rate like a request. items
// is the maximum number of returned items. During an estimate, resolve only records items.
func (s *server) resolve(ctx context.Context, name string, items int, do func(*operation) error) error {
	b := budgetOf(ctx)
	items = min(max(items, 1), maxPage)
	if b.estimate != nil {
		ctx.Value(operationKey{}).(*operationEstimate).items = int64(items)
		return nil
	}
	o := &operation{name: name, subject: b.subject}
	p := s.run(ctx, o, func() (int, error) {
		if err := s.limit(b.subject).allow(1 + items/filesPerRequest); err != nil {
			return 0, err
		}
		return http.StatusOK, do(o)
	})
	if p != nil {
		return p
	}
	return nil
}

func (p *problem) Extensions() map[string]any {
	return map[string]any{"status": p.Status, "title": p.Title}
}

type root struct{ s *server }

type idArgs struct{ FileID graphql.ID }

func (r *root) File(ctx context.Context, args idArgs) (*fileNode, error) {
	return r.fileField(ctx, "get", args, r.s.getFile)
}

func (r *root) Complete(ctx context.Context, args idArgs) (*fileNode, error) {
	return r.fileField(ctx, "complete", args, r.s.completeFile)
}

func (r *root) DeleteFile(ctx context.Context, args idArgs) (*fileNode, error) {
	return r.fileField(ctx, "delete", args, r.s.deleteFile)
}

func (r *root) Undelete(ctx context.Context, args idArgs) (*fileNode, error) {
	return r.fileField(ctx, "undelete", args, r.s.undeleteFile)
}

func (r *root) fileField(ctx context.Context, name string, args idArgs, do func(context.Context, *operation, string) (files.File, error)) (n *fileNode, err error) {
	n = sampleFile()
	err = r.s.resolve(ctx, name, 1, func(o *operation) error {
		f, err := do(ctx, o, string(args.FileID))
		if err == nil {
			n, err = r.s.node(ctx, &f, true)
		}
		return err
	})
	return n, err
}

func (r *root) DeleteFiles(ctx context.Context, args struct{ Entity graphql.ID }) (n *deletedNode, err error) {
	n = &deletedNode{}
	err = r.s.resolve(ctx, "delete all", maxPage, func(o *operation) error {
		out, err := r.s.deleteFiles(ctx, o, string(args.Entity))
		if err == nil {
			n = &deletedNode{int32(out.Deleted), out.More} // at most maxPage
		}
		return err
	})
	return n, err
}

type deletedNode struct {
	Deleted int32
	More    bool
}

type uploadArgs struct {
	Input struct {
		Entity         graphql.ID
		Size           size
		ContentType    string
		SHA256         string
		IdempotencyKey *string
	}
}

func (r *root) Upload(ctx context.Context, args uploadArgs) (n *uploadNode, err error) {
	in := args.Input
	bytes := int64(in.Size)
	n = &uploadNode{File: sampleFile(), UploadHeaders: []header{{}}}
	err = r.s.resolve(ctx, "upload", 1, func(o *operation) error {
		f, signed, err := r.s.beginUpload(ctx, o, &uploadJSON{string(in.Entity), &bytes, in.ContentType, in.SHA256}, keysOf(in.IdempotencyKey))
		if err != nil {
			return err
		}
		node, err := r.s.node(ctx, &f, true)
		n = newUploadNode(node, signed)
		return err
	})
	return n, err
}

func keysOf(key *string) []string {
	if key == nil {
		return nil
	}
	return []string{*key}
}

type uploadNode struct {
	FileID        graphql.ID
	File          *fileNode
	UploadMethod  *string
	UploadURL     *string
	UploadHeaders []header
	UploadUntil   *graphql.Time
}

type header struct{ Key, Value string }

func newUploadNode(f *fileNode, signed files.SignedRequest) *uploadNode {
	n := &uploadNode{FileID: f.FileID, File: f}
	if signed.URL == "" {
		return n
	}
	n.UploadMethod, n.UploadURL, n.UploadUntil = &signed.Method, &signed.URL, &graphql.Time{Time: signed.Until}
	n.UploadHeaders = headersOf(signed)
	return n
}

func headersOf(signed files.SignedRequest) (headers []header) {
	for _, key := range slices.Sorted(maps.Keys(signed.Headers)) {
		headers = append(headers, header{key, signed.Headers[key]})
	}
	return headers
}

type size int64

func (size) ImplementsGraphQLType(name string) bool { return name == "Size" }

// UnmarshalGraphQL implements decode.Unmarshaler. Variables are float64.
func (n *size) UnmarshalGraphQL(input any) error {
	switch v := input.(type) {
	case int32:
		*n = size(v)
		return nil
	case int64:
		*n = size(v)
		return nil
	case float64:
		if v == float64(int64(v)) && v >= -1<<53 && v <= 1<<53 {
			*n = size(v)
			return nil
		}
	}
	return errors.New("a size must be a whole number of bytes, at most 2^53")
}
