package filesapi_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/files/filesapi"
	"github.com/pawlhq/pawl/internal/virtualtime"
	"github.com/pawlhq/pawl/store/memory"
)

type longURLs struct {
	files.Objects
	length int
	signed atomic.Int32
}

func (o *longURLs) SignGet(context.Context, *files.File, time.Duration) (string, error) {
	o.signed.Add(1)
	return "https://store.example/" + strings.Repeat("x", o.length), nil
}

func fullPage(t testing.TB, length int) (http.Handler, *longURLs) {
	t.Helper()
	index, objects := files.NewIndex(memory.New()), &longURLs{length: length}
	for range 1000 {
		id := uuid.Must(uuid.NewV7()).String()
		f := files.File{ID: id, Entity: "e", Key: id, Promise: files.Promise{ContentType: "image/png"}, State: files.Indexed}
		if _, err := index.Apply(t.Context(), files.Change{Next: f, Limit: files.Usage{Bytes: 1 << 40}}); err != nil {
			t.Fatal(err)
		}
	}
	service := &files.Service{Index: index, Objects: objects, Times: files.DefaultTimes()}
	tokens := must(filesapi.NewTokens(must(filesapi.Secret(secret)), filesapi.Claims{}))
	return must(filesapi.New(filesapi.Config{
		Files: service, Tokens: tokens, Cursors: secret, Rate: 10_000, Burst: 10_000, Logger: slog.New(slog.DiscardHandler),
	})), objects
}

func ask(t testing.TB, h http.Handler, query string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/graphql", bytes.NewReader(must(json.Marshal(map[string]any{"query": query}))))
	r.Header.Set("Authorization", "Bearer "+token(t, "read:*"))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const allFields = `fileId entity state size contentType sha256 partSize createdAt downloadURL`

func repeat(n int, form string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, form, i)
	}
	return b.String()
}

func TestQueryCost(t *testing.T) {
	h, objects := fullPage(t, 500)
	const tooMuch = "the query is too expensive"
	list := func(first int, fields string) string {
		return fmt.Sprintf(`{ entity(id: "e") { files(first: %d) { edges { %s } pageInfo { hasNextPage endCursor } } } }`, first, fields)
	}
	for name, test := range map[string]struct {
		query, want string
		signed      int32
	}{
		"each field once":           {list(1000, "__typename cursor node { __typename "+allFields+" }"), `"hasNextPage":false`, 1000},
		"aliases of one field":      {list(1000, "node { "+repeat(14, "a%d: downloadURL ")+" }"), tooMuch, 0},
		"490 aliases":               {list(1000, "node { "+repeat(490, "a%d: downloadURL ")+" }"), tooMuch, 0},
		"490 aliases of a few":      {list(20, "node { "+repeat(490, "a%d: size ")+" }"), `"a489":0`, 0},
		"aliases of nodes":          {list(1000, repeat(7, "a%d: node { downloadURL }")), tooMuch, 0},
		"fragments":                 {list(1000, "node { ...a ...b }") + "fragment a on File {" + repeat(7, "a%d: size ") + "} fragment b on File {" + repeat(7, "b%d: size ") + "}", tooMuch, 0},
		"skipped fields":            {list(1000, "node { size "+repeat(14, "a%d: size @skip(if: true) ")+" }"), `"hasNextPage":false`, 0},
		"default page":              {`{ entity(id: "e") { files { edges { node { ` + repeat(131, "a%d: size ") + ` } } } } }`, tooMuch, 0},
		"a page in a variable":      {`query ($n: Int = 1000) { entity(id: "e") { files(first: $n) { edges { node { ` + repeat(14, "a%d: size ") + ` } } } } }`, tooMuch, 0},
		"operations":                {"{" + repeat(21, `a%d: file(fileId: "x") { size } `) + "}", tooMuch, 0},
		"as many operations as may": {"{" + repeat(20, `a%d: file(fileId: "x") { size } `) + "}", "404", 0},
	} {
		t.Run(name, func(t *testing.T) {
			objects.signed.Store(0)
			got := ask(t, h, test.query)
			if !strings.Contains(got.Body.String(), test.want) || objects.signed.Load() != test.signed {
				t.Errorf("%d %.300s, %d URLs signed: want %q, %d", got.Code, got.Body, objects.signed.Load(), test.want, test.signed)
			}
			if strings.Contains(got.Body.String(), tooMuch) && strings.Contains(got.Body.String(), `"data"`) {
				t.Errorf("%.300s: a refused query has data", got.Body)
			}
		})
	}
}

func TestQueryMemory(t *testing.T) {
	h, _ := fullPage(t, 500)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	ask(t, h, `{ entity(id: "e") { files(first: 1000) { edges { node { `+repeat(490, "a%d: downloadURL ")+` } } } } }`)
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	allocated := after.TotalAlloc - before.TotalAlloc
	t.Logf("%d KiB allocated in %v", allocated>>10, took)
	if allocated > 20<<20 {
		t.Errorf("%d MiB allocated", allocated>>20)
	}
}

func TestResponseSizeLimit(t *testing.T) {
	h, _ := fullPage(t, 10_000)
	got := ask(t, h, `{ entity(id: "e") { files(first: 1000) { edges { node { downloadURL } } } } }`)
	if got.Code != http.StatusBadRequest || !strings.Contains(got.Body.String(), "8 MiB") {
		t.Errorf("%d %.300s", got.Code, got.Body)
	}
}

func TestDocumentSize(t *testing.T) {
	h, _ := fullPage(t, 1)
	const file = `{ file(fileId: "x") { ...f0 } }`
	const fragments, selections = "a query has at most 50 fragments", "a query has at most 500 selections"
	for name, test := range map[string]struct {
		query, want string
	}{
		"50 fragments":            {file + repeat(50, "fragment f%d on File { size } "), "is never used"},
		"51 fragments":            {file + repeat(51, "fragment f%d on File { size } "), fragments},
		"200 fragments of five":   {file + repeat(200, "fragment f%d on File { ...f0 ...f1 ...f2 ...f3 ...f4 } "), fragments},
		"operations":              {repeat(52, "query q%d { entity(id: 1) { id } } "), fragments},
		"spreads":                 {file + "fragment f0 on File {" + strings.Repeat("...f1 ", 900) + "} fragment f1 on File {" + strings.Repeat("...f0 ", 900) + "}", selections},
		"inline fragments":        {`{ file(fileId: "x") {` + strings.Repeat("...{size}", 400) + "} }", selections},
		"fields":                  {`{ file(fileId: "x") { ...f0 ...f1 } }` + repeat(2, "fragment f%d on File {"+strings.Repeat("size ", 1500)+"}"), selections},
		"variables":               {repeat(40, "query q%d { ...f } ") + "fragment f on Query { file(fileId: [" + strings.Repeat("$x ", 3000) + "]) { size } }", selections},
		"as many fields as may":   {`{ file(fileId: "x") { ` + repeat(499, "a%d: size ") + "} }", "404"},
		"a text with braces":      {`{ file(fileId: "` + strings.Repeat("{a ", 600) + `") { size } }`, "404"},
		"a block text":            {`{ file(fileId: """` + strings.Repeat(`{a "" `, 600) + `""") { size } }`, "404"},
		"a comment with braces":   {"# " + strings.Repeat("{a ", 600) + "\n" + `{ file(fileId: "x") { size } }`, "404"},
		"behind a comment":        {"# \"\n{ file(fileId: 1) {" + strings.Repeat("size ", 600) + "} }", selections},
		"behind an escaped quote": {`{ file(fileId: "\"") {` + strings.Repeat("size ", 600) + `} }`, selections},
		"behind a block text":     {`{ file(fileId: """ " { """) {` + strings.Repeat("size ", 600) + `} }`, selections},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ask(t, h, test.query); got.Code != http.StatusOK || !strings.Contains(got.Body.String(), test.want) {
				t.Errorf("%d %.300s: want %q", got.Code, got.Body, test.want)
			}
		})
	}
}

func TestInvalidLiterals(t *testing.T) {
	h, _ := fullPage(t, 1)
	upload := func(size string) string {
		return `mutation { upload(input: {entity: "e", size: ` + size + `, contentType: "a/b", sha256: "x"}) { fileId } }`
	}
	for _, query := range []string{
		upload("99999999999999999999"), upload("-99999999999999999999"), upload("1e999"),
		`query ($n: Int = 99999999999999999999) { entity(id: "e") { files(first: $n) { pageInfo { hasNextPage } } } }`,
		`query ($s: Size! = 99999999999999999999) { entity(id: "e") { id } }`,
	} {
		got := ask(t, h, query)
		if got.Code != http.StatusBadRequest && !strings.HasPrefix(got.Body.String(), `{"errors"`) || strings.Contains(got.Body.String(), "503") {
			t.Errorf("%s: %d %s", query, got.Code, got.Body)
		}
	}
	if got := ask(t, h, upload("99999999999999999999")); got.Code != http.StatusBadRequest {
		t.Errorf("%d %s", got.Code, got.Body)
	}
}

func FuzzQuery(f *testing.F) {
	h, _ := fullPage(f, 1)
	for _, query := range []string{
		`{ entity(id: "e") { files(first: 2) { edges { node { ` + allFields + ` } } } } }`, `query ($n: Int = 1) { entity(id: "e") { ...F @skip(if: true) } } fragment F on Entity { id }`,
		`mutation { upload(input: {entity: "e", size: 1e999, contentType: "a/b", sha256: "x"}) { fileId } }`, `{ __schema { types { name } } } # """ { `, "\ufeff{ ... on Query { x } }",
	} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		got := ask(t, h, query)
		if got.Code >= http.StatusInternalServerError || !json.Valid(got.Body.Bytes()) || strings.Contains(got.Body.String(), "goroutine") || strings.Contains(got.Body.String(), `"status":5`) {
			t.Errorf("%q: %d %.1000s", query, got.Code, got.Body)
		}
	})
}

// A client has ten seconds to read its response, and until then its request occupies a list slot of
// the subject.
func TestSlowReaders(t *testing.T) {
	for name, request := range map[string]string{
		"REST": "GET /v1/entities/e/files?limit=1000 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n",
		"GraphQL": "POST /graphql HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 98\r\n\r\n" +
			fmt.Sprintf("%-98s", `{"query": "{ entity(id: \"e\") { files(first: 1000) { edges { node { fileId size } } } } }"}`),
	} {
		t.Run(name, func(t *testing.T) {
			virtualtime.Test(t, func(t *testing.T) {
				h, _ := fullPage(t, 100)
				server, connections := &http.Server{Handler: h}, make(pipeListener)
				go func() { _ = server.Serve(connections) }() // always ErrServerClosed
				defer func() {
					close(connections)
					if err := server.Close(); err != nil {
						t.Error(err)
					}
				}()
				send := func() net.Conn {
					client, served := net.Pipe()
					connections <- served
					if _, err := fmt.Fprintf(client, request, token(t, "read:*")); err != nil {
						t.Fatal(err)
					}
					return client
				}
				began := time.Now()
				slow := []net.Conn{send(), send()}
				synctest.Wait()
				quick := send()
				answer, err := http.ReadResponse(bufio.NewReader(quick), nil)
				if err != nil {
					t.Fatal(err)
				}
				if n, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK || n < 10_000 {
					t.Errorf("%d, %d bytes, %v", answer.StatusCode, n, err)
				}
				if took := time.Since(began); took != 10*time.Second {
					t.Errorf("the third list took %s: want 10s", took)
				}
				for _, c := range append(slow, quick) {
					if err := c.Close(); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}
