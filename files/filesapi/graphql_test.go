package filesapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/files/filesapi"
)

// query returns the data, and the errors as status and message.
func (x *testAPI) query(token, text string, variables map[string]any) (map[string]any, []string) {
	x.t.Helper()
	got := x.want(http.StatusOK, token, "POST", "/graphql", map[string]any{"query": text, "variables": variables})
	var errs []string
	list, _ := got["errors"].([]any)
	for _, e := range list {
		e := e.(map[string]any)
		extensions, _ := e["extensions"].(map[string]any)
		errs = append(errs, fmt.Sprint(extensions["status"], " ", e["message"]))
	}
	data, _ := got["data"].(map[string]any)
	return data, errs
}

func lookup(data map[string]any, path ...string) any {
	var v any = data
	for _, name := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[name]
	}
	return v
}

const beginQuery = `mutation ($u: UploadInput!) { upload(input: $u) { fileId uploadMethod uploadURL uploadUntil uploadHeaders { key value } file { state size } } }`

func TestGraphQLLifecycle(t *testing.T) {
	x := serve(t, nil)
	ann := token(t, "read:e write:e")
	input := uploadOf("e", "hello")
	input["idempotencyKey"] = "one"
	ask := func(text string, path ...string) any {
		t.Helper()
		data, errs := x.query(ann, text, map[string]any{"u": input})
		if len(errs) > 0 {
			t.Fatal(text, errs)
		}
		return lookup(data, path...)
	}
	up := ask(beginQuery, "upload").(map[string]any)
	id := up["fileId"].(string)
	if again := ask(beginQuery, "upload", "fileId"); again != id {
		t.Errorf("the first request began the upload %v, and its repetition %v", id, again)
	}
	headers := map[string]any{}
	for _, h := range up["uploadHeaders"].([]any) {
		headers[lookup(h.(map[string]any), "key").(string)] = lookup(h.(map[string]any), "value")
	}
	x.put(map[string]any{"upload": map[string]any{"method": up["uploadMethod"], "url": up["uploadURL"], "headers": headers}}, "hello")
	byID := func(field string) string {
		return fmt.Sprintf(`{ %s(fileId: %q) { state size sha256 downloadURL } }`, field, id)
	}
	done := ask("mutation "+byID("complete"), "complete").(map[string]any)
	if done["state"] != "INDEXED" || done["size"] != 5.0 || done["sha256"] != input["sha256"] {
		t.Errorf("%v", done)
	}
	if resp, err := http.Get(done["downloadURL"].(string)); err != nil || resp.StatusCode != http.StatusOK {
		t.Error(resp, err)
	} else if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
	if url := ask(beginQuery, "upload", "uploadURL"); url != nil {
		t.Errorf("a completed upload still has the URL %v", url)
	}
	if got := ask("mutation "+byID("deleteFile"), "deleteFile", "state"); got != "DELETED" {
		t.Error(got)
	}
	if _, errs := x.query(ann, byID("file"), nil); len(errs) != 1 || errs[0] != "404 Not Found: no such file" {
		t.Errorf("a deleted file: %q", errs)
	}
	if got := ask("mutation "+byID("undelete"), "undelete", "state"); got != "INDEXED" {
		t.Error(got)
	}
	if got := ask(byID("file"), "file", "state"); got != "INDEXED" {
		t.Error(got)
	}
	if got := ask(`mutation { deleteFiles(entity: "e") { deleted more } }`, "deleteFiles", "deleted"); got != 1.0 {
		t.Error(got)
	}
	for _, action := range []string{"upload", "complete", "delete", "undelete", "delete all", "get"} {
		if !strings.Contains(x.log.String(), `"action":"`+action+`","subject":"ann","entity":"e"`) {
			t.Errorf("the log has no %s", action)
		}
	}
}

func TestConnection(t *testing.T) {
	x := serve(t, nil)
	all := token(t, "read:* write:*")
	want := make([]any, 5)
	for i := range want {
		_, stored := x.call(all, "POST", "/v1/files?entity=e", "text/plain", []byte{byte(i)})
		want[i] = stored["fileId"]
	}
	const list = `query ($e: ID!, $after: String) { entity(id: $e) { id files(first: 2, after: $after) {
		edges { cursor node { fileId entity } } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } } }`
	var got []any
	var after any
	for more := true; more; {
		data, errs := x.query(all, list, map[string]any{"e": "e", "after": after})
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		edges := lookup(data, "entity", "files", "edges").([]any)
		info := lookup(data, "entity", "files", "pageInfo").(map[string]any)
		for _, e := range edges {
			got = append(got, lookup(e.(map[string]any), "node", "fileId"))
		}
		if info["hasPreviousPage"] != (after != nil) || info["startCursor"] != lookup(edges[0].(map[string]any), "cursor") ||
			info["endCursor"] != lookup(edges[len(edges)-1].(map[string]any), "cursor") {
			t.Errorf("%v", info)
		}
		after, more = info["endCursor"], info["hasNextPage"].(bool)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v: want %v", got, want)
	}
	if _, errs := x.query(all, list, map[string]any{"e": "f", "after": after}); len(errs) != 1 || !strings.HasPrefix(errs[0], "400") {
		t.Errorf("the cursor of another list: %q", errs)
	}
	page := x.want(http.StatusOK, all, "GET", "/v1/entities/e/files?limit=2", nil)
	if data, _ := x.query(all, list, map[string]any{"e": "e"}); page["next"] != lookup(data, "entity", "files", "pageInfo", "endCursor") {
		t.Error("REST and GraphQL have cursors that differ")
	}
	data, errs := x.query(all, `{ entity(id: "none") { files { edges { cursor } pageInfo { endCursor hasNextPage } } } }`, nil)
	if got, _ := json.Marshal(data); len(errs) > 0 || string(got) != `{"entity":{"files":{"edges":[],"pageInfo":{"endCursor":null,"hasNextPage":false}}}}` {
		t.Errorf("%s %v", got, errs)
	}
}

// The connection specification requires PageInfo even for a page of 0 files.
func TestEmptyConnection(t *testing.T) {
	x := serve(t, nil)
	all := token(t, "read:* write:*")
	for range 2 {
		x.call(all, "POST", "/v1/files?entity=e", "text/plain", []byte("x"))
	}
	const list = `query ($e: ID!, $first: Int!, $after: String) { entity(id: $e) { files(first: $first, after: $after) {
		edges { cursor } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } } }`
	page := func(entity string, first int, after any) map[string]any {
		t.Helper()
		data, errs := x.query(all, list, map[string]any{"e": entity, "first": first, "after": after})
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		return lookup(data, "entity", "files").(map[string]any)
	}
	last := lookup(page("e", 2, nil), "pageInfo", "endCursor")
	for name, test := range map[string]struct {
		entity         string
		after          any
		next, previous bool
	}{
		"files":              {"e", nil, true, false},
		"none":               {"f", nil, false, false},
		"after the last one": {"e", last, false, true},
	} {
		got := page(test.entity, 0, test.after)
		want := fmt.Sprintf(`{"edges":[],"pageInfo":{"endCursor":null,"hasNextPage":%t,"hasPreviousPage":%t,"startCursor":null}}`, test.next, test.previous)
		if text := string(must(json.Marshal(got))); text != want {
			t.Errorf("%s: %s: want %s", name, text, want)
		}
	}
	schema := string(must(os.ReadFile("schema.graphql")))
	for _, field := range []string{"pageInfo: PageInfo!", "hasNextPage: Boolean!", "hasPreviousPage: Boolean!"} {
		if !strings.Contains(schema, "  "+field+"\n") {
			t.Errorf("the schema has no %s", field)
		}
	}
	x.want(http.StatusBadRequest, all, "GET", "/v1/entities/e/files?limit=0", nil)
}

func testGraphQLLimits(t *testing.T) {
	x := serve(t, func(c *filesapi.Config) { c.Rate, c.Burst = 0.001, 200 })
	all := token(t, "read:* write:*")
	const deep = `{ entity(id: "e") { files { edges { node { fileId } } } } }`
	if _, errs := x.query(all, deep, nil); len(errs) > 0 {
		t.Errorf("a query for the files of a list: %q", errs)
	}
	aliases := func(n int, field string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "a%d: %s ", i, field)
		}
		return "{ " + b.String() + " }"
	}
	const none = `file(fileId: "019b0000-0000-7000-8000-000000000000") { fileId }`
	for name, test := range map[string]struct {
		query, want string
		only        bool // expect only an error
	}{
		"depth":           {`{ entity(id: "e") { files { edges { node { fileId { x } } } } } }`, "exceeds max depth 5", false},
		"introspection":   {`{ __schema { types { name } } }`, "/schema.graphql", false},
		"types":           {`{ __type(name: "File") { name } }`, "/schema.graphql", false},
		"selections":      {aliases(400, `entity(id: "e") { id }`), "selections", true},
		"overlaps":        {`{ entity(id: "e") { ` + strings.Repeat("id ", 400) + ` } }`, "Overlapping field validation aborted", false},
		"cost of lists":   {aliases(2, `entity(id: "e") { files(first: 600) { pageInfo { hasNextPage } } }`), "Bad Request: the query is too expensive: split it into several requests", true},
		"cost":            {strings.Replace(aliases(2, `deleteFiles(entity: "e") { more }`), "{", "mutation {", 1), "Bad Request: the query is too expensive: split it into several requests", true},
		"page":            {`{ entity(id: "e") { files(first: 100000) { pageInfo { hasNextPage } } } }`, "Bad Request: a page has at most 1000 files", true},
		"negative page":   {`{ entity(id: "e") { files(first: -5) { pageInfo { hasNextPage } } } }`, "Bad Request: a page has at most 1000 files", true},
		"fields":          {`{ entity(id: "e") { ` + strings.Repeat("id ", 1000) + ` } }`, "Bad Request: a query has at most 500 selections", true},
		"endless":         {`{ entity(id: "e") { ...f } } fragment f on Entity { ...f }`, "", false},
		"huge literal":    {`query ($n: Int = 99999999999999999999) { entity(id: "e") { files(first: $n) { pageInfo { hasNextPage } } } }`, "", false},
		"unknown":         {`{ secrets }`, `Cannot query field \"secrets\"`, true},
		"not GraphQL":     {`hello`, "", true},
		"empty":           {``, "", true},
		"odd size":        {`mutation { upload(input: {entity: "e", size: 1.5, contentType: "a/b", sha256: "x"}) { fileId } }`, "a size must be a whole number", false},
		"negative size":   {`mutation { upload(input: {entity: "e", size: -1, contentType: "a/b", sha256: "` + strings.Repeat("0", 64) + `"}) { fileId } }`, "Unprocessable Entity", true},
		"huge size":       {`mutation { upload(input: {entity: "e", size: 99999999999999999999, contentType: "a/b", sha256: "x"}) { fileId } }`, "a number is too large", false},
		"mass assignment": {`mutation { upload(input: {entity: "e", size: 1, contentType: "a/b", sha256: "x", state: INDEXED}) { fileId } }`, `\"state\"`, false},
	} {
		t.Run(name, func(t *testing.T) {
			y := *x
			y.t = t
			status, got := y.call(all, "POST", "/graphql", "application/json", must(json.Marshal(map[string]any{"query": test.query})))
			text := string(must(json.Marshal(got)))
			list, _ := got["errors"].([]any)
			if status >= 500 || status == http.StatusOK && len(list) == 0 || test.only && len(list) != 1 || !strings.Contains(text, test.want) {
				t.Errorf("%d %.500s: want %q", status, text, test.want)
			}
			if strings.Contains(text, "panic") || strings.Contains(text, "strconv") {
				t.Errorf("%s tells of the inside", text)
			}
		})
	}
	x.want(http.StatusBadRequest, all, "POST", "/graphql", []any{map[string]any{"query": deep}, map[string]any{"query": deep}})
	x.want(http.StatusRequestEntityTooLarge, all, "POST", "/graphql", map[string]any{"query": strings.Repeat(" ", 20_000)})
	x.want(http.StatusMethodNotAllowed, all, "GET", "/graphql", nil)
	x.want(http.StatusUnauthorized, "", "POST", "/graphql", map[string]any{"query": deep})

	bob := token(t, "read:f")
	data, errs := x.query(bob, aliases(20, none), nil)
	if len(errs) != 20 || len(data) != 20 || data["a0"] != nil || !strings.HasPrefix(errs[0], "404") || errs[0] != errs[19] {
		t.Errorf("%v %q", data, errs)
	}
	if strings.Count(x.log.String(), `"action":"get","subject":"ann"`) < 20 {
		t.Error("the log does not have each operation")
	}
}

func TestGraphQLRate(t *testing.T) {
	x := serve(t, func(c *filesapi.Config) { c.Rate, c.Burst = 0.001, 4 })
	ann := token(t, "read:*")
	_, errs := x.query(ann, `{ a: entity(id: "e") { ...f } b: entity(id: "e") { ...f } c: entity(id: "e") { ...f } d: entity(id: "e") { ...f } }
		fragment f on Entity { files(first: 49) { pageInfo { hasNextPage } } }`, nil)
	if len(errs) != 1 || errs[0] != "429 Too Many Requests: too many requests: slow down" {
		t.Errorf("%q", errs)
	}
	x.want(http.StatusTooManyRequests, ann, "POST", "/graphql", map[string]any{"query": "{ entity(id: 1) { id } }"})
}
