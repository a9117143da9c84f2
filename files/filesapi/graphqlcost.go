package filesapi

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"text/scanner"

	gqlerrors "github.com/graph-gophers/graphql-go/errors"
	"github.com/graph-gophers/graphql-go/trace/noop"
)

const (
	// Operations beyond the first count towards maxFragments.
	maxFragments = 50
	// fileFields are cursor, node, nine fields of File, and __typename of both.
	fileFields = 13
	// maxCost is the cost of one list of maxPage files that selects each field once.
	maxCost       = maxPage * fileFields
	operationCost = maxCost / 20
)

// checkDocument rejects documents that take too long to validate. Validation is quadratic: the
// library compares all pairs of selections. The scanner is the library's, so the counts are never
// too low for a document that the library can parse.
func checkDocument(text string) *problem {
	var s scanner.Scanner
	s.Init(strings.NewReader(text))             // in the default mode, like the library
	s.Error = func(*scanner.Scanner, string) {} // the library reports errors
	var d documentCount
	last := rune(scanner.EOF)
	for token := s.Scan(); token != scanner.EOF; last, token = token, s.Scan() {
		switch {
		case token == '#':
			skipComment(&s)
		case token == scanner.String && s.Peek() == '"' && s.TokenText() == `""`:
			skipBlockString(&s)
		default:
			d.add(token, last)
		}
	}
	if d.definitions > maxFragments+1 {
		return newProblem(http.StatusBadRequest, "a query has at most 50 fragments")
	}
	if d.selections+d.dots/len("...") > maxSelections {
		return newProblem(http.StatusBadRequest, "a query has at most 500 selections and variables")
	}
	return nil
}

type documentCount struct{ definitions, selections, dots, braces, parentheses int }

func (d *documentCount) add(token, last rune) {
	outside := d.parentheses == 0 // not inside arguments
	switch {
	case token == '(':
		d.parentheses++
	case token == ')':
		d.parentheses--
	case token == '.':
		d.dots++
	case token == '$':
		d.selections++
	case token == '{' && outside:
		if d.braces == 0 {
			d.definitions++
		}
		d.braces++
	case token == '}' && outside:
		d.braces--
	case token == scanner.Ident && outside && d.braces > 0:
		if last != ':' && last != '@' && last != '.' { // a name after a colon has an alias, which counts instead
			d.selections++
		}
	}
}

func skipComment(s *scanner.Scanner) {
	for c := s.Next(); c != '\r' && c != '\n' && c != scanner.EOF; c = s.Next() {
	}
}

func skipBlockString(s *scanner.Scanner) {
	s.Next() // the third quote
	for quotes := 0; quotes < 3; {
		switch s.Next() {
		case '"':
			quotes++
		case scanner.EOF:
			return
		default:
			quotes = 0
		}
	}
}

// estimate executes the query with resolvers that have no effect and return one element for each
// list.
type estimate struct {
	mu         sync.Mutex
	operations []*operationEstimate
	// unreadable is set if the library panicked at a literal.
	unreadable atomic.Bool
}

type operationEstimate struct {
	items  int64 // maximum number of returned items; 0: none
	fields atomic.Int64
}

// An operation costs its items times its selected fields.
func (e *estimate) cost() (sum int64) {
	for _, o := range e.operations {
		fields, lowest := o.fields.Load(), int64(0)
		if o.items > 0 {
			lowest = max(operationCost, o.items*fileFields)
		}
		sum += max(lowest, fields*max(o.items, 1))
	}
	return sum
}

type operationKey struct{}

type estimator struct{ noop.Tracer }

// TraceField implements tracer.Tracer. Its context reaches the field's resolver and the fields
// below it.
func (estimator) TraceField(ctx context.Context, _, typeName, field string, _ bool, _ map[string]any) (context.Context, func(*gqlerrors.QueryError)) {
	o, _ := ctx.Value(operationKey{}).(*operationEstimate)
	switch {
	case typeName == "Query", typeName == "Mutation", typeName == "Entity" && field == "files":
		o = &operationEstimate{}
		e := budgetOf(ctx).estimate
		e.mu.Lock()
		e.operations = append(e.operations, o)
		e.mu.Unlock()
		ctx = context.WithValue(ctx, operationKey{}, o)
	case typeName == "FileConnection", typeName == "PageInfo": // counted once per list
	default:
		o.fields.Add(1)
	}
	return ctx, func(*gqlerrors.QueryError) {}
}
