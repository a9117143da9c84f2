package filesapi_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jwt"
	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	v3 "github.com/pb33f/libopenapi/datamodel/high/v3"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/files/filesapi"
	"github.com/pawlhq/pawl/files/s3objects"
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/memory"
)

var secret = bytes.Repeat([]byte("k"), 32)

// testAPI is an API over a real store. It validates every request and response against
// openapi.yaml.
type testAPI struct {
	t       *testing.T
	url     string
	rules   validator.Validator
	doc     *v3.Document
	log     *bytes.Buffer
	files   *files.Service
	records store.Store
}

func serve(t *testing.T, change func(*filesapi.Config)) *testAPI {
	srv := servertest.MinIO(t, servertest.Options{})
	x := &testAPI{t: t, log: &bytes.Buffer{}, records: memory.New()}
	x.files = &files.Service{
		Index: files.NewIndex(x.records), Objects: s3objects.New(srv.Client(), srv.NewBucket(t), "").AcceptForgeable(), Times: files.DefaultTimes(), Prefix: "files/",
		Limit: limit(10),
	}
	keys, err := filesapi.Secret(secret)
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := filesapi.NewTokens(keys, filesapi.Claims{})
	if err != nil {
		t.Fatal(err)
	}
	c := filesapi.Config{
		Files: x.files, Tokens: tokens, Cursors: secret, MaxSize: 500, Spool: t.TempDir(),
		Logger: slog.New(slog.NewJSONHandler(x.log, nil)),
	}
	if change != nil {
		change(&c)
	}
	h, err := filesapi.New(c)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	x.url = web.URL
	text, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := libopenapi.NewDocument(text)
	if err != nil {
		t.Fatal(err)
	}
	x.doc = &must(doc.BuildV3Model()).Model
	var errs []error
	if x.rules, errs = validator.NewValidator(doc); len(errs) > 0 {
		t.Fatal(errs)
	}
	if ok, errs := x.rules.ValidateDocument(); !ok {
		t.Fatal(errs)
	}
	return x
}

func limit(n int64) func(string) files.Usage {
	return func(string) files.Usage { return files.Usage{Bytes: n * files.MinCharge, Open: 100} }
}

func token(t testing.TB, scope string, change ...func(jwt.Token) error) string {
	t.Helper()
	made, err := jwt.NewBuilder().Subject("ann").Expiration(time.Now().Add(time.Hour)).Claim("scope", scope).Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range change {
		if err := c(made); err != nil {
			t.Fatal(err)
		}
	}
	text, err := jwt.Sign(made, jwt.WithKey(jwa.HS256(), secret))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (x *testAPI) call(token, method, path, contentType string, body []byte, headers ...string) (int, map[string]any) {
	x.t.Helper()
	r, err := http.NewRequestWithContext(x.t.Context(), method, x.url+path, bytes.NewReader(body))
	if err != nil {
		x.t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		x.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		x.t.Fatal(err)
	}
	resp.Body = io.NopCloser(bytes.NewReader(text))
	if resp.StatusCode != http.StatusNotFound && resp.StatusCode != http.StatusMethodNotAllowed {
		if ok, errs := x.rules.ValidateHttpResponse(r, resp); !ok {
			x.t.Errorf("%s %s: %s: not as openapi.yaml has it: %v", method, path, text, errs[0])
		}
	}
	got := map[string]any{}
	if err := json.Unmarshal(text, &got); err != nil {
		x.t.Errorf("%s %s: %q: %v", method, path, text, err)
	}
	if strings.Contains(string(text), "goroutine") || strings.Contains(string(text), "127.0.0.1") && got["status"] != nil {
		x.t.Errorf("%s tells of the inside", text)
	}
	return resp.StatusCode, got
}

func (x *testAPI) want(status int, token, method, path string, body any, headers ...string) map[string]any {
	x.t.Helper()
	contentType, text := "", []byte(nil)
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			x.t.Fatal(err)
		}
		contentType = "application/json"
	}
	got, answer := x.call(token, method, path, contentType, text, headers...)
	if got != status {
		x.t.Errorf("%s %s: %d %v: want %d", method, path, got, answer, status)
	}
	return answer
}

func uploadOf(entity, body string) map[string]any {
	sum := sha256.Sum256([]byte(body))
	return map[string]any{"entity": entity, "size": len(body), "contentType": "text/plain", "sha256": hex.EncodeToString(sum[:])}
}

func (x *testAPI) put(signed map[string]any, body string) {
	x.t.Helper()
	if status, answer := x.send(signed, body); status != http.StatusOK {
		x.t.Errorf("%d %s", status, answer)
	}
}

func (x *testAPI) send(signed map[string]any, body string) (int, []byte) {
	x.t.Helper()
	up := signed["upload"].(map[string]any)
	r, err := http.NewRequestWithContext(x.t.Context(), up["method"].(string), up["url"].(string), strings.NewReader(body))
	if err != nil {
		x.t.Fatal(err)
	}
	for name, value := range up["headers"].(map[string]any) {
		if name != "Content-Length" {
			r.Header.Set(name, value.(string))
		}
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		x.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	return resp.StatusCode, must(io.ReadAll(resp.Body))
}

func TestRESTLifecycle(t *testing.T) {
	x := serve(t, nil)
	ann := token(t, "read:e write:e")
	signed := x.want(http.StatusCreated, ann, "POST", "/v1/uploads", uploadOf("e", "hello"), "Idempotency-Key", "one")
	id := signed["file"].(map[string]any)["fileId"].(string)
	again := x.want(http.StatusCreated, ann, "POST", "/v1/uploads", uploadOf("e", "hello"), "Idempotency-Key", "one")
	if got := again["file"].(map[string]any)["fileId"]; got != id {
		t.Errorf("the first request began the upload %v, and its repetition %v", id, got)
	}
	x.want(http.StatusConflict, ann, "POST", "/v1/uploads", uploadOf("e", "other"), "Idempotency-Key", "one")
	state := func(want string, got map[string]any) {
		t.Helper()
		if got["state"] != want {
			t.Errorf("%v: want it %s", got, want)
		}
	}
	state("pending", x.want(http.StatusOK, ann, "POST", "/v1/files/"+id+"/complete", nil))
	x.put(signed, "hello")
	done := x.want(http.StatusOK, ann, "POST", "/v1/files/"+id+"/complete", nil)
	state("indexed", done)
	if u, _ := done["downloadUrl"].(string); !strings.Contains(u, "X-Amz-Expires=300&") {
		t.Errorf("the URL of a download is not valid for five minutes: %s", u)
	}
	x.wantList(ann, id)
	state("deleted", x.want(http.StatusOK, ann, "DELETE", "/v1/files/"+id, nil))
	x.wantList(ann)
	x.want(http.StatusNotFound, ann, "GET", "/v1/files/"+id, nil)
	x.want(http.StatusNotFound, ann, "POST", "/v1/files/"+id+"/complete", nil)
	state("deleted", x.want(http.StatusOK, ann, "DELETE", "/v1/files/"+id, nil))
	state("indexed", x.want(http.StatusOK, ann, "POST", "/v1/files/"+id+"/undelete", nil))
	x.wantList(ann, id)
	status, stored := x.call(ann, "POST", "/v1/files?entity=e", "image/png", []byte("not really"))
	if status != http.StatusCreated || stored["state"] != "indexed" || stored["contentType"] != "image/png" {
		t.Errorf("%d %v", status, stored)
	}
	x.wantList(ann, id, stored["fileId"].(string))
	x.want(http.StatusOK, ann, "DELETE", "/v1/entities/e/files", nil)
	x.wantList(ann)
}

func (x *testAPI) wantList(token string, want ...string) {
	x.t.Helper()
	var got []string
	for after := ""; ; {
		page := x.want(http.StatusOK, token, "GET", "/v1/entities/e/files?limit=1&after="+after, nil)
		for _, f := range page["files"].([]any) {
			got = append(got, f.(map[string]any)["fileId"].(string))
		}
		next, more := page["next"].(string)
		if !more {
			break
		}
		after = next
	}
	if !slices.Equal(want, got) {
		x.t.Errorf("listed %v: want %v", got, want)
	}
}

func testOtherEntities(t *testing.T) {
	x := serve(t, nil)
	ann, bob := token(t, "read:e write:e"), token(t, "read:f write:f")
	id := x.want(http.StatusCreated, ann, "POST", "/v1/uploads", uploadOf("e", "hello"))["file"].(map[string]any)["fileId"].(string)
	for _, path := range []string{"GET /v1/files/%", "DELETE /v1/files/%", "POST /v1/files/%/complete", "POST /v1/files/%/undelete"} {
		method, path, _ := strings.Cut(path, " ")
		theirs := x.want(http.StatusNotFound, bob, method, strings.ReplaceAll(path, "%", id), nil)
		none := x.want(http.StatusNotFound, bob, method, strings.ReplaceAll(path, "%", "019b0000-0000-7000-8000-000000000000"), nil)
		if !maps.Equal(theirs, none) {
			t.Errorf("%v tells more than %v", theirs, none)
		}
	}
	x.want(http.StatusNotFound, bob, "GET", "/v1/entities/e/files", nil)
	x.want(http.StatusNotFound, bob, "DELETE", "/v1/entities/e/files", nil)
	x.want(http.StatusNotFound, bob, "POST", "/v1/uploads", uploadOf("e", "hello"))
	if status, _ := x.call(bob, "POST", "/v1/files?entity=e", "text/plain", []byte("x")); status != http.StatusNotFound {
		t.Errorf("stored for another: %d", status)
	}
	x.want(http.StatusNotFound, token(t, "read:e"), "DELETE", "/v1/files/"+id, nil)
	all := token(t, "read:* write:*")
	for range 2 {
		x.call(all, "POST", "/v1/files?entity=e", "text/plain", []byte("x"))
	}
	cursor := x.want(http.StatusOK, all, "GET", "/v1/entities/e/files?limit=1", nil)["next"].(string)
	x.want(http.StatusBadRequest, all, "GET", "/v1/entities/f/files?after="+cursor, nil)
	x.want(http.StatusBadRequest, all, "GET", "/v1/entities/e/files?after=x"+cursor, nil)
}

func testTokens(t *testing.T) {
	x := serve(t, nil)
	key, err := jwk.Import(secret)
	if err != nil {
		t.Fatal(err)
	}
	unsigned, err := jwt.Sign(must(jwt.NewBuilder().Subject("ann").Expiration(time.Now().Add(time.Hour)).Claim("scope", "read:*").Build()), jwt.WithInsecureNoSignature())
	if err != nil {
		t.Fatal(err)
	}
	stronger, err := jwt.Sign(must(jwt.NewBuilder().Subject("ann").Expiration(time.Now().Add(time.Hour)).Claim("scope", "read:*").Build()), jwt.WithKey(jwa.HS512(), key))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"none":        "",
		"no token":    "abc",
		"alg none":    string(unsigned),
		"another alg": string(stronger),
		"expired":     token(t, "read:*", func(j jwt.Token) error { return j.Set(jwt.ExpirationKey, time.Now().Add(-2*time.Minute)) }),
		"no end":      token(t, "read:*", func(j jwt.Token) error { return j.Remove(jwt.ExpirationKey) }),
		"no subject":  token(t, "read:*", func(j jwt.Token) error { return j.Remove(jwt.SubjectKey) }),
		"not yet":     token(t, "read:*", func(j jwt.Token) error { return j.Set(jwt.NotBeforeKey, time.Now().Add(time.Hour)) }),
		"changed":     token(t, "read:*")[:20] + "A" + token(t, "read:*")[21:],
		"odd scope":   token(t, "read:*", func(j jwt.Token) error { return j.Set("scope", []int{1}) }),
		"very long":   strings.Repeat("a", 10_000),
	} {
		t.Run(name, func(t *testing.T) {
			y := *x
			y.t = t
			y.want(http.StatusUnauthorized, text, "GET", "/v1/entities/e/files", nil)
		})
	}
	x.want(http.StatusOK, token(t, "read:*", func(j jwt.Token) error { return j.Set(jwt.ExpirationKey, time.Now().Add(-30*time.Second)) }),
		"GET", "/v1/entities/e/files", nil) // the times are within the clock skew
	if strings.Contains(x.log.String(), token(t, "read:*")[:30]) {
		t.Error("the log contains a token")
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestInvalidRequests(t *testing.T) {
	x := serve(t, nil)
	all := token(t, "read:* write:*")
	bad := func(change func(map[string]any)) map[string]any {
		u := uploadOf("e", "hello")
		change(u)
		return u
	}
	for name, test := range map[string]struct {
		status       int
		method, path string
		body         any
	}{
		"unknown path":     {404, "GET", "/v2/files", nil},
		"method":           {405, "PUT", "/v1/files", nil},
		"no body":          {415, "POST", "/v1/uploads", nil},
		"not an object":    {400, "POST", "/v1/uploads", []int{1}},
		"unknown field":    {400, "POST", "/v1/uploads", bad(func(u map[string]any) { u["x"] = 1 })},
		"negative size":    {422, "POST", "/v1/uploads", bad(func(u map[string]any) { u["size"] = -1 })},
		"huge size":        {422, "POST", "/v1/uploads", bad(func(u map[string]any) { u["size"] = 501 })},
		"size of no int64": {400, "POST", "/v1/uploads", bad(func(u map[string]any) { u["size"] = 1e30 })},
		"no sum":           {422, "POST", "/v1/uploads", bad(func(u map[string]any) { delete(u, "sha256") })},
		"no size":          {422, "POST", "/v1/uploads", bad(func(u map[string]any) { delete(u, "size") })},
		"size of null":     {422, "POST", "/v1/uploads", bad(func(u map[string]any) { u["size"] = nil })},
		"dotted entity":    {400, "POST", "/v1/uploads", bad(func(u map[string]any) { u["entity"] = ".." })},
		"two limits":       {400, "GET", "/v1/entities/e/files?limit=1&limit=2", nil},
		"empty limit":      {400, "GET", "/v1/entities/e/files?limit=", nil},
		"no query":         {400, "POST", "/graphql", map[string]any{"variables": map[string]any{}}},
		"odd type":         {422, "POST", "/v1/uploads", bad(func(u map[string]any) { u["contentType"] = "a\nb" })},
		"odd entity":       {400, "POST", "/v1/uploads", bad(func(u map[string]any) { u["entity"] = "../x" })},
		"long entity":      {400, "GET", "/v1/entities/" + strings.Repeat("e", 129) + "/files", nil},
		"no id":            {404, "GET", "/v1/files/nothing", nil},
		"path as id":       {404, "GET", "/v1/files/..%2F..%2Fetc", nil},
		"limit":            {400, "GET", "/v1/entities/e/files?limit=0", nil},
		"cursor":           {400, "GET", "/v1/entities/e/files?after=%00", nil},
		"long body":        {413, "POST", "/v1/uploads", bad(func(u map[string]any) { u["entity"] = strings.Repeat("e", 20_000) })},
	} {
		t.Run(name, func(t *testing.T) {
			y := *x
			y.t = t
			y.want(test.status, all, test.method, test.path, test.body)
		})
	}
	if status, _ := x.call(all, "POST", "/v1/files?entity=e", "multipart/form-data; boundary=x", []byte("x")); status != http.StatusUnsupportedMediaType {
		t.Errorf("a form: %d", status)
	}
	if status, _ := x.call(all, "POST", "/v1/files?entity=e", "text/plain", make([]byte, 501)); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a file that is too long: %d", status)
	}
	x.files.Limit = limit(2)
	x.want(http.StatusCreated, all, "POST", "/v1/uploads", uploadOf("full", "x"))
	x.want(http.StatusCreated, all, "POST", "/v1/uploads", uploadOf("full", "y"))
	x.want(http.StatusForbidden, all, "POST", "/v1/uploads", uploadOf("full", "z"))
}

func testRate(t *testing.T) {
	x := serve(t, func(c *filesapi.Config) { c.Rate, c.Burst = 0.001, 2 })
	ann := token(t, "read:* write:*")
	bob := token(t, "read:*", func(j jwt.Token) error { return j.Set(jwt.SubjectKey, "bob") })
	x.want(http.StatusOK, ann, "GET", "/v1/entities/e/files?limit=49", nil)
	x.want(http.StatusOK, ann, "GET", "/v1/entities/e/files?limit=49", nil)
	x.want(http.StatusTooManyRequests, ann, "GET", "/v1/entities/e/files?limit=1", nil)
	x.want(http.StatusOK, bob, "GET", "/v1/entities/e/files?limit=1", nil)
	x.want(http.StatusTooManyRequests, bob, "GET", "/v1/entities/e/files?limit=50", nil)
	for _, query := range []string{`{ entity(id: "e") { files(first: 1000) { edges { cursor } } } }`, `mutation { deleteFiles(entity: "e") { more } }`} {
		x = serve(t, func(c *filesapi.Config) { c.Rate, c.Burst = 0.001, 1+1+1000/50+1 })
		if _, errs := x.query(ann, query, nil); len(errs) > 0 {
			t.Error(errs)
		}
		x.want(http.StatusNotFound, ann, "GET", "/v1/files/"+noSuch, nil)
		x.want(http.StatusTooManyRequests, ann, "GET", "/v1/files/"+noSuch, nil)
	}
}

type brokenStore struct{ store.Store }

func (brokenStore) Load(context.Context, []store.Key) ([]store.Record, error) {
	return nil, os.ErrDeadlineExceeded
}

func testInternalErrors(t *testing.T) {
	x := serve(t, nil)
	x.files.Index = files.NewIndex(brokenStore{memory.New()})
	got := x.want(http.StatusServiceUnavailable, token(t, "read:*"), "GET", "/v1/files/019b0000-0000-7000-8000-000000000000", nil)
	if strings.Contains(got["detail"].(string), "deadline") || !strings.Contains(x.log.String(), "i/o timeout") {
		t.Errorf("%v\n%s", got, x.log)
	}
}

func TestMultipartLifecycle(t *testing.T) {
	x := serve(t, func(c *filesapi.Config) { c.MaxSize = 6 << 30; c.Files.Limit = nil })
	ann := token(t, "read:e write:e")
	parts := []string{strings.Repeat("a", 5<<20), "the end"}
	u := map[string]any{"entity": "e", "size": 5<<20 + 7, "contentType": "video/mp4", "partSize": 5 << 20}
	var sums []string
	for _, part := range parts {
		sums = append(sums, uploadOf("e", part)["sha256"].(string))
	}
	u["parts"] = sums
	signed := x.want(http.StatusCreated, ann, "POST", "/v1/uploads/parts", u, "Idempotency-Key", "one")
	file := signed["file"].(map[string]any)
	complete := func(want string) {
		t.Helper()
		if got := x.want(http.StatusOK, ann, "POST", "/v1/files/"+file["fileId"].(string)+"/complete", nil); got["state"] != want {
			t.Errorf("%v: want it %s", got, want)
		}
	}
	send := func(signed map[string]any, n int) {
		x.put(map[string]any{"upload": signed["parts"].([]any)[n]}, parts[n])
	}
	send(signed, 1)
	complete("pending")
	again := x.want(http.StatusCreated, ann, "POST", "/v1/uploads/parts", u, "Idempotency-Key", "one")
	if got := again["file"].(map[string]any)["fileId"]; got != file["fileId"] {
		t.Errorf("the first request began the upload %v, and its repetition %v", file, got)
	}
	send(again, 0)
	complete("indexed")
	complete("indexed")
	if done := x.want(http.StatusCreated, ann, "POST", "/v1/uploads/parts", u, "Idempotency-Key", "one"); done["parts"] != nil {
		t.Errorf("%v: want no URLs", done)
	}
	for name, change := range map[string]func(map[string]any){
		"small parts":   func(u map[string]any) { u["partSize"] = 5<<20 - 1 },
		"large parts":   func(u map[string]any) { u["partSize"] = 5<<30 + 1 },
		"no parts":      func(u map[string]any) { delete(u, "parts") },
		"no part size":  func(u map[string]any) { delete(u, "partSize") },
		"odd sum":       func(u map[string]any) { u["parts"] = []string{sums[0], "x"} },
		"a part less":   func(u map[string]any) { u["parts"] = sums[:1] },
		"a part more":   func(u map[string]any) { u["size"] = 5 << 20 },
		"empty":         func(u map[string]any) { u["size"], u["parts"] = 0, []string{} },
		"negative":      func(u map[string]any) { u["size"] = -1 },
		"many parts":    func(u map[string]any) { u["size"], u["parts"] = 5<<20*1000+1, slices.Repeat(sums[:1], 1001) },
		"too large":     func(u map[string]any) { u["size"], u["partSize"] = 6<<30+1, 5<<30 },
		"most of bytes": func(u map[string]any) { u["size"], u["partSize"] = int64(1)<<62, 5<<30 },
	} {
		t.Run(name, func(t *testing.T) {
			y := *x
			y.t = t
			bad := maps.Clone(u)
			change(bad)
			y.want(http.StatusUnprocessableEntity, ann, "POST", "/v1/uploads/parts", bad)
		})
	}
	x.want(http.StatusUnprocessableEntity, ann, "POST", "/v1/uploads", map[string]any{"entity": "e", "size": 5<<30 + 1, "contentType": "a/b", "sha256": sums[0]})
	most := maps.Clone(u)
	most["size"], most["parts"] = 5<<20*1000, slices.Repeat(sums[:1], 1000)
	if got := x.want(http.StatusCreated, ann, "POST", "/v1/uploads/parts", most)["parts"].([]any); len(got) != 1000 {
		t.Errorf("%d URLs", len(got))
	}
	x.partsByGraphQL(ann, u, parts)
}

func (x *testAPI) partsByGraphQL(ann string, u map[string]any, parts []string) {
	ask := func(query string, variables map[string]any) map[string]any {
		x.t.Helper()
		got := x.want(http.StatusOK, ann, "POST", "/graphql", map[string]any{"query": query, "variables": variables})
		if got["errors"] != nil {
			x.t.Fatal(got)
		}
		return got["data"].(map[string]any)
	}
	up := ask(`mutation ($u: UploadPartsInput!) { uploadParts(input: $u) { fileId parts { method url headers { key value } } } }`, map[string]any{"u": u})["uploadParts"].(map[string]any)
	for i, p := range up["parts"].([]any) {
		part, headers := p.(map[string]any), map[string]any{}
		for _, h := range part["headers"].([]any) {
			headers[h.(map[string]any)["key"].(string)] = h.(map[string]any)["value"]
		}
		x.put(map[string]any{"upload": map[string]any{"method": part["method"], "url": part["url"], "headers": headers}}, parts[i])
	}
	done := ask(`mutation ($id: ID!) { complete(fileId: $id) { state partSize } }`, map[string]any{"id": up["fileId"]})["complete"].(map[string]any)
	if done["state"] != "INDEXED" || done["partSize"] != float64(5<<20) {
		x.t.Error(done)
	}
}
