package filesapi_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graph-gophers/graphql-go"
	"github.com/graph-gophers/graphql-go/ast"
	"pgregory.net/rapid"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/store/sqlite"
)

// TestSchema: whatever a client makes of schema.graphql, well or badly, the service
// answers with data in the schema's form, or with errors that are its own.
//
//	go test ./files/filesapi -run TestSchema -requests 400000 -v
func TestSchema(t *testing.T) {
	s := newSurface(t)
	schema := graphql.MustParseSchema(string(must(os.ReadFile("schema.graphql"))), nil).AST()
	counts := map[string]int{}
	checks(t, *requests/2/walkSteps)
	rapid.Check(t, func(r *rapid.T) {
		index := must(sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "files.db")))
		defer func() { _ = index.Close() }() // of a walk that is over
		s.files.Index = files.NewIndex(index)
		a := &asker{walk: &walk{surface: s, t: r, known: map[string][]string{}}, schema: schema}
		for range walkSteps {
			if rapid.IntRange(0, 9).Draw(r, "store") == 0 {
				_, got := s.call(tokens(t)["all"], "POST", "/v1/files?entity="+rapid.SampledFrom(entities).Draw(r, "entity"), "text/plain", []byte(rapid.SampledFrom(texts).Draw(r, "bytes")))
				if id, ok := got["fileId"].(string); ok {
					a.known["fileId"] = append(a.known["fileId"], id)
				}
				continue
			}
			outcome, err := a.ask()
			if err != nil {
				r.Fatal(err)
			}
			counts[outcome]++
		}
	})
	t.Log(counts)
	if counts["data"] == 0 || counts["refused"] == 0 {
		t.Error("not everything was tried")
	}
}

// asker makes queries.
type asker struct {
	*walk
	schema    *ast.Schema
	n         int // of names so far
	variables map[string]any
	defined   []string
}

// selected is a field that a query asks for.
type selected struct {
	alias string
	kind  ast.Type
	inner []selected
}

// ask sends a query, which may be broken, and returns what came of it.
func (a *asker) ask() (string, error) {
	a.variables, a.defined = map[string]any{}, nil
	operation := rapid.SampledFrom(slices.Sorted(maps.Keys(a.schema.RootOperationTypes))).Draw(a.t, "operation")
	text, fields := a.selection(a.schema.RootOperationTypes[operation].(*ast.ObjectTypeDefinition))
	head := operation
	if len(a.defined) > 0 {
		head += "(" + strings.Join(a.defined, ", ") + ")"
	}
	text = head + " " + text
	broken := rapid.Bool().Draw(a.t, "broken")
	if broken {
		text = a.breakText(text)
	}
	status, body, err := a.exchange(a.graphql(marshal(map[string]any{"query": text, "variables": a.variables})))
	if err != nil {
		return "", err
	}
	var got map[string]any
	if err := json.Unmarshal(body, &got); err != nil {
		return "", err
	}
	outcome, err := a.judge(status, got, fields, broken)
	if err != nil {
		return "", fmt.Errorf("%.2000s %s: %d %.2000s: %w", text, marshal(a.variables), status, marshal(got), err)
	}
	each(got["data"], func(alias string, v any) {
		name, _, _ := strings.Cut(alias, "_")
		if s, ok := v.(string); ok {
			a.known[name] = append(a.known[name], s)
		}
	})
	return outcome, nil
}

// graphql returns a request with a body.
func (a *asker) graphql(body []byte) *drawn {
	i := slices.IndexFunc(a.operations, func(d *described) bool { return d.OperationId == "graphql" })
	q := &drawn{op: a.operations[i], method: "POST", header: http.Header{}, body: body, fault: "text", lets: true, covers: true}
	q.header.Set("Authorization", "Bearer "+tokens(a.site.t)["all"])
	q.header.Set("Content-Type", "application/json")
	return q
}

// judge holds an answer against the schema.
func (a *asker) judge(status int, got map[string]any, fields []selected, broken bool) (string, error) {
	if status >= 500 || strings.Contains(string(marshal(got)), "goroutine") {
		return "", errors.New("the service has failed")
	}
	if status != http.StatusOK {
		if !broken {
			return "", errors.New("the schema allows it, and it is refused")
		}
		return "refused", nil
	}
	list, _ := got["errors"].([]any)
	data, _ := got["data"].(map[string]any)
	own := true // errors of operations have a status
	for _, e := range list {
		extensions, _ := e.(map[string]any)["extensions"].(map[string]any)
		status, ok := extensions["status"].(float64)
		own = own && ok
		if ok && status >= 500 {
			return "", errors.New("an operation has failed")
		}
	}
	switch {
	case len(list) == 0 && data == nil:
		return "", errors.New("neither data nor errors")
	case broken && !own:
		return "refused", nil
	case broken:
		return "broken, and data", nil
	case !own:
		return "", errors.New("the schema allows it, and it is refused")
	case data == nil && strings.Contains(string(marshal(list)), "the request asks for too much at once"):
		return "too much", nil
	case data == nil:
		return "", errors.New("there is no data")
	}
	return "data", a.shape(fields, data)
}

// shape wants data to have the fields that were selected, of their types.
func (a *asker) shape(fields []selected, data map[string]any) error {
	if len(fields) != len(data) {
		return fmt.Errorf("%v: want %d fields", data, len(fields))
	}
	for _, f := range fields {
		v, ok := data[f.alias]
		if !ok {
			return fmt.Errorf("%v has no %s", data, f.alias)
		}
		if err := a.typed(f, f.kind, v); err != nil {
			return err
		}
	}
	return nil
}

// typed wants a value to be of a type.
func (a *asker) typed(f selected, kind ast.Type, v any) error {
	required, ok := kind.(*ast.NonNull)
	if ok {
		kind = required.OfType
	}
	if v == nil {
		if ok {
			return fmt.Errorf("%s is null", f.alias)
		}
		return nil
	}
	switch kind := kind.(type) {
	case *ast.List:
		list, ok := v.([]any)
		if !ok {
			return fmt.Errorf("%s is no list: %v", f.alias, v)
		}
		for _, e := range list {
			if err := a.typed(f, kind.OfType, e); err != nil {
				return err
			}
		}
		return nil
	case *ast.ObjectTypeDefinition:
		inner, ok := v.(map[string]any)
		if !ok {
			return fmt.Errorf("%s is no object: %v", f.alias, v)
		}
		return a.shape(f.inner, inner)
	case *ast.EnumTypeDefinition:
		ok = slices.ContainsFunc(kind.EnumValuesDefinition, func(e *ast.EnumValueDefinition) bool { return e.EnumValue == v })
	default:
		switch kind.String() {
		case "Boolean":
			_, ok = v.(bool)
		case "Int", "Size":
			_, ok = v.(float64)
		default:
			_, ok = v.(string)
		}
	}
	if !ok {
		return fmt.Errorf("%s is no %s: %v", f.alias, kind, v)
	}
	return nil
}

// selection draws fields of an object.
func (a *asker) selection(o *ast.ObjectTypeDefinition) (string, []selected) {
	var fields []selected
	var b strings.Builder
	b.WriteString("{")
	for range rapid.IntRange(1, 3).Draw(a.t, "fields") {
		field := rapid.SampledFrom(o.Fields).Draw(a.t, "field")
		a.n++
		f := selected{alias: fmt.Sprintf("%s_%d", field.Name, a.n), kind: field.Type}
		fmt.Fprintf(&b, " %s: %s%s", f.alias, field.Name, a.arguments(field.Arguments))
		if inner, ok := named(field.Type).(*ast.ObjectTypeDefinition); ok {
			text, of := a.selection(inner)
			f.inner = of
			b.WriteString(" " + text)
		}
		fields = append(fields, f)
	}
	return b.String() + " }", fields
}

// named is what a type is made of.
func named(t ast.Type) ast.Type {
	for {
		switch outer := t.(type) {
		case *ast.NonNull:
			t = outer.OfType
		case *ast.List:
			t = outer.OfType
		default:
			return t
		}
	}
}

// arguments draws arguments, as literals or as variables.
func (a *asker) arguments(defined ast.ArgumentsDefinition) string {
	var args []string
	for _, d := range defined {
		_, required := d.Type.(*ast.NonNull)
		if (!required || d.Default != nil) && rapid.Bool().Draw(a.t, "without "+d.Name.Name) {
			continue
		}
		v := a.argument(d.Type)
		text := literal(v)
		if rapid.Bool().Draw(a.t, "variable") {
			a.n++
			name := fmt.Sprintf("v%d", a.n)
			a.variables[name] = v
			a.defined = append(a.defined, "$"+name+": "+d.Type.String())
			text = "$" + name
		}
		args = append(args, d.Name.Name+": "+text)
	}
	if len(args) == 0 {
		return ""
	}
	return "(" + strings.Join(args, ", ") + ")"
}

// argument draws a value of a type.
func (a *asker) argument(kind ast.Type) any {
	required, ok := kind.(*ast.NonNull)
	if ok {
		kind = required.OfType
	} else if rapid.IntRange(0, 9).Draw(a.t, "null") == 0 {
		return nil
	}
	if input, ok := kind.(*ast.InputObject); ok {
		out := map[string]any{}
		for _, v := range input.Values {
			if _, required := v.Type.(*ast.NonNull); required || rapid.Bool().Draw(a.t, "with "+v.Name.Name) {
				out[v.Name.Name] = a.argument(v.Type)
			}
		}
		return out
	}
	switch kind.String() {
	case "Int":
		return rapid.OneOf(rapid.Int32Range(0, 5), rapid.Int32()).Draw(a.t, "int")
	case "Size":
		return rapid.OneOf(rapid.Int64Range(0, 50), rapid.Int64Range(-1<<53, 1<<53)).Draw(a.t, "size")
	case "Boolean":
		return rapid.Bool().Draw(a.t, "bool")
	}
	texts := slices.Concat(entities, a.known["fileId"], a.known["endCursor"], []string{"text/plain", strings.Repeat("0a", 32), a.absurd()})
	return strings.ToValidUTF8(rapid.SampledFrom(texts).Draw(a.t, "text"), "?")
}

// literal writes a value as GraphQL does: names of members have no quotes.
func literal(v any) string {
	if m, ok := v.(map[string]any); ok {
		var members []string
		for _, name := range slices.Sorted(maps.Keys(m)) {
			members = append(members, name+": "+literal(m[name]))
		}
		return "{" + strings.Join(members, ", ") + "}"
	}
	return string(must(json.Marshal(v)))
}

// tokensOfGraphQL are put where they do not belong.
var tokensOfGraphQL = []string{
	"{", "}", "(", ")", "[", "]", "!", "$", "$x", "@", "@skip(if: true)", "@include(if: \"x\")", "@deprecated", "...", "...F", "fragment F on File { fileId ...F }", "... on File { x }",
	"__typename", "__schema { types { name } }", "__type(name: \"File\") { name }", "query", "mutation", "subscription { x }", "\"", "\"\"\"", "#", "-", "-1", "1.5", "1e999", "99999999999999999999",
	"null", "true", "{a: {b: 1}}", "[1, \"x\"]", "PENDING", "\\u0000", "\x00", "\ufeff", "é", "&", "|", ":", ",", "query A { entity(id: 1) { id } }", "files(first: -1)", "(first: 1, first: 2)",
}

// breakText changes the text of a query.
func (a *asker) breakText(text string) string {
	at := rapid.IntRange(0, len(text)).Draw(a.t, "at")
	switch rapid.IntRange(0, 4).Draw(a.t, "way") {
	case 0:
		end := min(len(text), at+rapid.IntRange(1, 10).Draw(a.t, "cut"))
		return text[:at] + text[end:]
	case 1:
		return text + " " + text
	case 2:
		n := rapid.SampledFrom([]int{10, 200, 3000}).Draw(a.t, "times")
		return text[:at] + strings.Repeat(rapid.SampledFrom(tokensOfGraphQL).Draw(a.t, "token")+" ", n) + text[at:]
	case 3:
		for range 3 {
			at := rapid.IntRange(0, len(text)).Draw(a.t, "at")
			text = text[:at] + " " + rapid.SampledFrom(tokensOfGraphQL).Draw(a.t, "token") + " " + text[at:]
		}
		return text
	}
	words := strings.Fields(text)
	i, j := rapid.IntRange(0, len(words)-1).Draw(a.t, "i"), rapid.IntRange(0, len(words)-1).Draw(a.t, "j")
	words[i], words[j] = words[j], words[i]
	return strings.Join(words, " ")
}
