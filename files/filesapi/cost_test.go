package filesapi_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/files/filesapi"
	"github.com/pawlhq/pawl/files/s3objects"
	"github.com/pawlhq/pawl/proof/servertest"
)

type counter struct {
	s3.HTTPClient
	mu   sync.Mutex
	sent []string
}

func (c *counter) Do(r *http.Request) (*http.Response, error) {
	name := r.Method
	if query := r.URL.Query(); r.Method == "GET" && (query.Has("uploads") || query.Has("uploadId")) {
		name = "LIST"
	}
	c.mu.Lock()
	c.sent = append(c.sent, name)
	c.mu.Unlock()
	return c.HTTPClient.Do(r)
}

func (c *counter) drain() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	sent := c.sent
	c.sent = nil
	return sent
}

type fastClock struct {
	files.Objects
	by time.Duration
}

func (a fastClock) Stat(ctx context.Context, key string) (files.ObjectInfo, error) {
	seen, err := a.Objects.Stat(ctx, key)
	seen.Date = seen.Date.Add(a.by)
	return seen, err
}

type requestCounter struct {
	index *recorder
	store *counter
	table []string
}

func (b *requestCounter) row(name string) {
	reads, writes := 0, 0
	for _, call := range b.index.drain() {
		switch call {
		case "Apply":
			writes++
		case "Load", "Scan":
			reads++
		}
	}
	sent := b.store.drain()
	slices.Sort(sent)
	words := []string{}
	for len(sent) > 0 {
		n := 1
		for n < len(sent) && sent[n] == sent[0] {
			n++
		}
		words = append(words, fmt.Sprintf("%d %s", n, sent[0]))
		sent = sent[n:]
	}
	b.table = append(b.table, fmt.Sprintf("| %s | %s | %d | %d |", name, cmp.Or(strings.Join(words, ", "), "none"), reads, writes))
}

// docs/FILES.md has the table of TestCost.
func TestCost(t *testing.T) {
	x := serve(t, func(c *filesapi.Config) { c.MaxSize, c.Files.Limit = 10<<20, nil })
	srv := servertest.MinIO(t, servertest.Options{})
	b := &requestCounter{store: &counter{HTTPClient: http.DefaultClient}}
	client := s3.New(srv.Client().Options(), func(o *s3.Options) { o.HTTPClient = b.store })
	bucket := s3objects.New(client, srv.NewBucket(t), "").AcceptForgeable()
	if _, err := bucket.Probe(t.Context(), x.files.Prefix); err != nil { // once per process
		t.Fatal(err)
	}
	x.files.Objects = bucket
	b.index = x.record()
	ann := token(t, "read:e write:e")
	ask := func(status int, request string, body any, row string, headers ...string) (map[string]any, string) {
		method, path, _ := strings.Cut(request, " ")
		b.index.drain()
		b.store.drain()
		got := x.want(status, ann, method, path, body, headers...)
		b.row(row)
		id, _ := lookup(got, "file", "fileId").(string)
		return got, "/v1/files/" + id
	}
	ask(201, "POST /v1/uploads", uploadOf("e", "x"), "first `POST /v1/uploads` of an entity in a process")
	begun, file := ask(201, "POST /v1/uploads", uploadOf("e", "hello"), "`POST /v1/uploads` with an idempotency key", "Idempotency-Key", "one")
	x.put(begun, "hello")
	ask(200, "POST "+file+"/complete", nil, "`complete` after the upload")
	ask(200, "POST "+file+"/complete", nil, "repeated `complete`")
	begun, noticed := ask(201, "POST /v1/uploads", uploadOf("e", "hello"), "`POST /v1/uploads`")
	x.put(begun, "hello")
	b.notify(x, noticed, "notification")
	parts := []string{strings.Repeat("a", 5<<20), "the end"}
	begun, large := ask(201, "POST /v1/uploads/parts", map[string]any{
		"entity": "e", "size": 5<<20 + 7, "contentType": "video/mp4", "partSize": 5 << 20,
		"parts": []any{uploadOf("e", parts[0])["sha256"], uploadOf("e", parts[1])["sha256"]},
	}, "`POST /v1/uploads/parts`")
	for i := range parts {
		x.put(map[string]any{"upload": begun["parts"].([]any)[i]}, parts[i])
	}
	ask(200, "POST "+large+"/complete", nil, "`complete` of two parts")
	x.call(ann, "POST", "/v1/files?entity=e", "text/plain", []byte("x"))
	b.row("`POST /v1/files`")
	ask(200, "GET "+file, nil, "`GET` of a file")
	ask(200, "GET /v1/entities/e/files?limit=1000", nil, "list page of up to 1,000 files")
	ask(200, "DELETE "+file, nil, "`DELETE`")
	ask(200, "POST "+file+"/undelete", nil, "`undelete`")
	ask(200, "DELETE "+file, nil, "`DELETE`")
	for _, by := range []time.Duration{25 * time.Hour, 25 * time.Hour, 75 * time.Hour} {
		x.files.Now = func() time.Time { return time.Now().Add(by) }
		b.index.Objects = fastClock{b.index.Objects, by}
		if _, err := x.files.Reconcile(t.Context(), strings.TrimPrefix(file, "/v1/files/"), false); err != nil {
			t.Fatal(err)
		}
	}
	b.row("purge of a deleted file, and later of its row")
	page := string(must(os.ReadFile("../../docs/FILES.md")))
	for _, row := range b.table {
		if !strings.Contains(page, row+"\n") {
			t.Errorf("docs/FILES.md lacks the row\n%s", row)
		}
	}
}

func (b *requestCounter) notify(x *testAPI, file, row string) {
	b.index.drain()
	b.store.drain()
	if f, err := x.files.Reconcile(x.t.Context(), strings.TrimPrefix(file, "/v1/files/"), true); err != nil || f.State != files.Indexed {
		x.t.Error(f, err)
	}
	b.row(row)
}
