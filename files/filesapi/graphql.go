package filesapi

import (
	"context"
	_ "embed"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/graph-gophers/graphql-go"
	gqlerrors "github.com/graph-gophers/graphql-go/errors"
	gqllog "github.com/graph-gophers/graphql-go/log"

	"github.com/pawlhq/pawl/files"
)

//go:embed schema.graphql
var schema string

const (
	// maxDepth is that of entity, files, edges, node and a field of a file.
	maxDepth = 5
	// maxSelections is how many fields a request may select.
	maxSelections = 500
	// maxOverlaps is how many pairs of fields are compared to find contradictions.
	maxOverlaps = 10_000
	// maxCost is what one request may cost: an operation costs operationCost, a list
	// at least one for each file that it may have.
	maxCost       = 1000
	operationCost = 50
)

// newSchema returns the schema with its resolvers. It is served as text; asking for
// it in queries, which may nest deep, is not possible.
func (s *server) newSchema() (*graphql.Schema, error) {
	return graphql.ParseSchema(schema, &root{s}, graphql.UseFieldResolvers(), graphql.RestrictIntrospection(func(context.Context) bool { return false }),
		graphql.MaxDepth(maxDepth), graphql.MaxSelections(maxSelections), graphql.OverlapValidationLimit(maxOverlaps),
		graphql.PanicHandler(panics{}), graphql.Logger(gqllog.LoggerFunc(s.logPanic)))
}

// panics answers for resolvers that panic, and tells nothing of it.
type panics struct{}

func (panics) MakePanicError(context.Context, any) *gqlerrors.QueryError {
	p := explain(nil)
	return &gqlerrors.QueryError{Message: p.Error(), Extensions: p.Extensions()}
}

func (s *server) logPanic(ctx context.Context, value any) {
	s.Logger.LogAttrs(ctx, slog.LevelError, "files: a resolver panicked", slog.Any("panic", value))
}

// graphqlJSON is the body of POST /graphql.
type graphqlJSON struct {
	Query         *string        `json:"query"`
	OperationName string         `json:"operationName"`
	Variables     map[string]any `json:"variables"`
	Extensions    jsontext.Value `json:"extensions"` // clients may send them; none are known
}

func (s *server) graphql(q *request) (a *answer, err error) {
	var g graphqlJSON
	if err := q.decode(&g, maxBody); err != nil {
		return nil, err
	}
	if g.Query == nil {
		return nil, refuse(http.StatusBadRequest, "the body has no query")
	}
	defer func() { // the library panics at some literals
		if value := recover(); value != nil {
			s.logPanic(q.Context(), value)
			a, err = nil, refuse(http.StatusBadRequest, "the query cannot be read")
		}
	}()
	ctx := context.WithValue(q.Context(), budgetKey{}, &budget{subject: q.subject})
	got := s.schema.Exec(ctx, *g.Query, g.OperationName, g.Variables)
	if len(got.Errors) == 0 && string(got.Data) == "{}" {
		return nil, refuse(http.StatusBadRequest, "queries cannot ask for the schema: see /schema.graphql")
	}
	return &answer{http.StatusOK, &resultJSON{jsontext.Value(got.Data), got.Errors}}, nil
}

// resultJSON is an answer of GraphQL. Data is missing where nothing was executed.
type resultJSON struct {
	Data   jsontext.Value          `json:"data,omitzero"`
	Errors []*gqlerrors.QueryError `json:"errors,omitempty"`
}

type budgetKey struct{}

// budget is that of one request.
type budget struct {
	subject *Subject
	spent   atomic.Int64
}

func budgetOf(ctx context.Context) *budget { return ctx.Value(budgetKey{}).(*budget) }

// resolve runs an operation that a query asks for, as if it had come by itself: the
// rate of the subject counts it, and the log has it.
func (s *server) resolve(ctx context.Context, name string, cost int64, do func(*operation) error) error {
	b := budgetOf(ctx)
	o := &operation{name: name, subject: b.subject}
	p := s.perform(ctx, o, func() (int, error) {
		if b.spent.Add(max(cost, operationCost)) > maxCost {
			return 0, refuse(http.StatusBadRequest, "the request asks for too much at once: send several")
		}
		if err := s.limit(b.subject).allow(1 + int(max(cost, 0))/filesAtOnce); err != nil {
			return 0, err
		}
		return http.StatusOK, do(o)
	})
	if p != nil {
		return p
	}
	return nil
}

// Extensions tells clients of GraphQL the kind of an error: a status of HTTP.
func (p *problem) Extensions() map[string]any {
	return map[string]any{"status": p.Status, "title": p.Title}
}

// root resolves queries and mutations.
type root struct{ s *server }

type idArgs struct{ FileID graphql.ID }

func (r *root) File(ctx context.Context, args idArgs) (*fileNode, error) {
	return r.one(ctx, "get", args, r.s.getFile)
}

func (r *root) Complete(ctx context.Context, args idArgs) (*fileNode, error) {
	return r.one(ctx, "complete", args, r.s.completeFile)
}

func (r *root) DeleteFile(ctx context.Context, args idArgs) (*fileNode, error) {
	return r.one(ctx, "delete", args, r.s.deleteFile)
}

func (r *root) Undelete(ctx context.Context, args idArgs) (*fileNode, error) {
	return r.one(ctx, "undelete", args, r.s.undeleteFile)
}

func (r *root) one(ctx context.Context, name string, args idArgs, do func(context.Context, *operation, string) (files.File, error)) (n *fileNode, err error) {
	err = r.s.resolve(ctx, name, 0, func(o *operation) error {
		f, err := do(ctx, o, string(args.FileID))
		if err == nil {
			n, err = r.s.node(ctx, &f, true)
		}
		return err
	})
	return n, err
}

func (r *root) DeleteFiles(ctx context.Context, args struct{ Entity graphql.ID }) (n *deletedNode, err error) {
	err = r.s.resolve(ctx, "delete all", maxCost, func(o *operation) error {
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
	err = r.s.resolve(ctx, "upload", 0, func(o *operation) error {
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

// size is the scalar Size.
type size int64

// ImplementsGraphQLType implements decode.Unmarshaler.
func (size) ImplementsGraphQLType(name string) bool { return name == "Size" }

// UnmarshalGraphQL implements decode.Unmarshaler. A literal is an integer, a variable
// a float64.
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
	return errors.New("a size is a whole number of bytes, up to 2^53")
}
