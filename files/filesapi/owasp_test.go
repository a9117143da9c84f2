package filesapi_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"
	"github.com/lestrrat-go/jwx/v3/jwt"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/files/filesapi"
	"github.com/pawlhq/pawl/store"
)

// TestOWASP has a test for each item of the OWASP API Security Top 10 of 2023.
func TestOWASP(t *testing.T) {
	for _, item := range []struct {
		name  string
		tests map[string]func(*testing.T)
	}{
		{"API1 Broken Object Level Authorization", map[string]func(*testing.T){"others": testOtherEntities, "queries": testQueries}},
		{"API2 Broken Authentication", map[string]func(*testing.T){"tokens": testTokens, "keys": testKeys}},
		{"API3 Broken Object Property Level Authorization", map[string]func(*testing.T){"properties": testProperties}},
		{"API4 Unrestricted Resource Consumption", map[string]func(*testing.T){"rate": testRate, "slow": testSlow, "read-only": testReadOnly, "streams": testStreams, "spool": testSpool, "lists": testLists, "queries": testGraphQLLimits}},
		{"API5 Broken Function Level Authorization", map[string]func(*testing.T){"scopes": testScopes}},
		{"API6 Unrestricted Access to Sensitive Business Flows", map[string]func(*testing.T){"uploads": testFlood}},
		{"API7 Server Side Request Forgery", map[string]func(*testing.T){"urls": testForgery}},
		{"API8 Security Misconfiguration", map[string]func(*testing.T){"headers": testHeaders, "internal errors": testInternalErrors}},
		{"API9 Improper Inventory Management", map[string]func(*testing.T){"inventory": testInventory}},
		{"API10 Unsafe Consumption of APIs", map[string]func(*testing.T){"store": testStore}},
	} {
		t.Run(item.name, func(t *testing.T) {
			for name, test := range item.tests {
				t.Run(name, test)
			}
		})
	}
}

type recorder struct {
	store.Store
	files.Objects
	mu    sync.Mutex
	calls []string
}

func (r *recorder) note(call string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call)
}

func (r *recorder) drain() (calls []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls, r.calls = r.calls, nil
	return calls
}

func (r *recorder) Apply(ctx context.Context, changes []store.Change) ([]store.Outcome, error) {
	r.note("Apply")
	return r.Store.Apply(ctx, changes)
}

func (r *recorder) Load(ctx context.Context, keys []store.Key) ([]store.Record, error) {
	r.note("Load")
	return r.Store.Load(ctx, keys)
}

func (r *recorder) Scan(ctx context.Context, in store.Range) iter.Seq2[store.Record, error] {
	r.note("Scan")
	return r.Store.Scan(ctx, in)
}

func (r *recorder) Sign(ctx context.Context, f *files.File, until time.Time) (files.SignedRequest, error) {
	r.note("Sign")
	return r.Objects.Sign(ctx, f, until)
}

func (r *recorder) SignGet(ctx context.Context, f *files.File, life time.Duration) (string, error) {
	r.note("SignGet")
	return r.Objects.SignGet(ctx, f, life)
}

func (r *recorder) Stat(ctx context.Context, key string) (files.ObjectInfo, error) {
	r.note("Stat")
	return r.Objects.Stat(ctx, key)
}

func (x *testAPI) record() *recorder {
	r := &recorder{Store: x.records, Objects: x.files.Objects}
	x.files.Index, x.files.Objects = files.NewIndex(r), r
	return r
}

const noSuch = "019b0000-0000-7000-8000-000000000000"

var byID = []struct{ method, path, query string }{
	{"GET", "/v1/files/%", `{ file(fileId: "%") { fileId } }`},
	{"DELETE", "/v1/files/%", `mutation { deleteFile(fileId: "%") { fileId } }`},
	{"POST", "/v1/files/%/complete", `mutation { complete(fileId: "%") { fileId } }`},
	{"POST", "/v1/files/%/undelete", `mutation { undelete(fileId: "%") { fileId } }`},
}

// testQueries compares responses and calls to index and store. Neither they nor response times may
// reveal whether a file exists.
func testQueries(t *testing.T) {
	x := serve(t, func(c *filesapi.Config) { c.Rate, c.Burst = 1, 1000 })
	ann, bob := token(t, "read:e write:e"), token(t, "read:f write:f")
	begin := func() string {
		return x.want(http.StatusCreated, ann, "POST", "/v1/uploads", uploadOf("e", "hello"))["file"].(map[string]any)["fileId"].(string)
	}
	_, stored := x.call(ann, "POST", "/v1/files?entity=e", "text/plain", []byte("x"))
	deleted := begin()
	x.want(http.StatusOK, ann, "DELETE", "/v1/files/"+deleted, nil)
	r := x.record()
	for _, id := range []string{begin(), stored["fileId"].(string), deleted} {
		r.drain()
		for _, c := range byID {
			ask := func(id string) (map[string]any, []string, []string, []string) {
				rest := x.want(http.StatusNotFound, bob, c.method, strings.ReplaceAll(c.path, "%", id), nil)
				byREST := r.drain()
				_, errs := x.query(bob, strings.ReplaceAll(c.query, "%", id), nil)
				return rest, byREST, errs, r.drain()
			}
			rest, byREST, errs, byGraphQL := ask(id)
			none, noneREST, noneErrs, noneGraphQL := ask(noSuch)
			if !maps.Equal(rest, none) || !slices.Equal(byREST, noneREST) || !slices.Equal(errs, noneErrs) || !slices.Equal(byGraphQL, noneGraphQL) {
				t.Errorf("%s %s: the file answers %v %v %q %v, and a missing file answers %v %v %q %v", c.method, c.path, rest, byREST, errs, byGraphQL, none, noneREST, noneErrs, noneGraphQL)
			}
			if !slices.Equal(byREST, []string{"Load"}) || !slices.Equal(byGraphQL, byREST) {
				t.Errorf("%s %s asks %v and %v: want one Load", c.method, c.path, byREST, byGraphQL)
			}
		}
	}
	x.call(ann, "POST", "/v1/files?entity=e", "text/plain", []byte("y"))
	cursor := x.want(http.StatusOK, ann, "GET", "/v1/entities/e/files?limit=1", nil)
	r.drain()
	for _, entity := range []string{"e", "none"} {
		x.want(http.StatusNotFound, bob, "GET", "/v1/entities/"+entity+"/files", nil)
		x.want(http.StatusNotFound, bob, "GET", fmt.Sprintf("/v1/entities/%s/files?after=%s", entity, cursor["next"]), nil)
		x.want(http.StatusNotFound, bob, "DELETE", "/v1/entities/"+entity+"/files", nil)
		x.want(http.StatusNotFound, bob, "POST", "/v1/uploads", uploadOf(entity, "hello"), "Idempotency-Key", "one")
		x.call(bob, "POST", "/v1/files?entity="+entity, "text/plain", []byte("x"))
		for _, query := range []string{`{ entity(id: "%") { files { edges { cursor } } } }`, `mutation { deleteFiles(entity: "%") { more } }`} {
			if _, errs := x.query(bob, strings.ReplaceAll(query, "%", entity), nil); len(errs) != 1 || !strings.HasPrefix(errs[0], "404") {
				t.Errorf("%s: %q", query, errs)
			}
		}
	}
	x.want(http.StatusBadRequest, bob, "GET", fmt.Sprintf("/v1/entities/f/files?after=%s", cursor["next"]), nil)
	if calls := r.drain(); len(calls) > 0 {
		t.Errorf("a request with the cursor of another entity caused %v", calls)
	}
}

func testKeys(t *testing.T) {
	private := must(rsa.GenerateKey(rand.Reader, 2048))
	curve := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	set := jwk.NewSet()
	add := func(public any, alg jwa.SignatureAlgorithm) {
		key := must(jwk.Import(public))
		if err := errors.Join(key.Set(jwk.AlgorithmKey, alg), set.AddKey(key)); err != nil {
			t.Fatal(err)
		}
	}
	add(private.Public(), jwa.RS256())
	add(curve.Public(), jwa.ES256())
	x := serve(t, func(c *filesapi.Config) { c.Tokens = must(filesapi.NewTokens(set, filesapi.Claims{Audience: "pawl"})) })
	der := must(x509.MarshalPKIXPublicKey(private.Public()))
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	sign := func(alg jwa.SignatureAlgorithm, key any, change ...func(*jwt.Builder) *jwt.Builder) string {
		b := jwt.NewBuilder().Subject("ann").Audience([]string{"pawl"}).Expiration(time.Now().Add(time.Hour)).Claim("scope", "read:*")
		for _, c := range change {
			b = c(b)
		}
		return string(must(jwt.Sign(must(b.Build()), jwt.WithKey(alg, key))))
	}
	at := func(d time.Duration) func(*jwt.Builder) *jwt.Builder {
		return func(b *jwt.Builder) *jwt.Builder {
			return b.NotBefore(time.Now().Add(d)).IssuedAt(time.Now().Add(d))
		}
	}
	expired := func(d time.Duration) func(*jwt.Builder) *jwt.Builder {
		return func(b *jwt.Builder) *jwt.Builder { return b.Expiration(time.Now().Add(-d)) }
	}
	for name, test := range map[string]struct {
		token string
		want  int
	}{
		"RS256":            {sign(jwa.RS256(), private), http.StatusOK},
		"ES256":            {sign(jwa.ES256(), curve), http.StatusOK},
		"public as secret": {sign(jwa.HS256(), public), http.StatusUnauthorized},
		"DER as secret":    {sign(jwa.HS256(), der), http.StatusUnauthorized},
		"other padding":    {sign(jwa.PS256(), private), http.StatusUnauthorized},
		"another key":      {sign(jwa.ES256(), must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))), http.StatusUnauthorized},
		"another audience": {sign(jwa.ES256(), curve, func(b *jwt.Builder) *jwt.Builder { return b.Audience([]string{"other"}) }), http.StatusUnauthorized},
		"ahead by 50 s":    {sign(jwa.ES256(), curve, at(50*time.Second)), http.StatusOK},
		"ahead by 70 s":    {sign(jwa.ES256(), curve, at(70*time.Second)), http.StatusUnauthorized},
		"expired by 50 s":  {sign(jwa.ES256(), curve, expired(50*time.Second)), http.StatusOK},
		"expired by 70 s":  {sign(jwa.ES256(), curve, expired(70*time.Second)), http.StatusUnauthorized},
		"no subject":       {sign(jwa.ES256(), curve, func(b *jwt.Builder) *jwt.Builder { return b.Subject("") }), http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			y := *x
			y.t = t
			got := y.want(test.want, test.token, "GET", "/v1/entities/e/files", nil)
			if test.want == http.StatusUnauthorized && got["detail"] != "a valid bearer token is required" {
				t.Errorf("the response %v reveals why a token is invalid", got)
			}
		})
	}
}

func testProperties(t *testing.T) {
	x := serve(t, nil)
	ann := token(t, "read:e write:e")
	for _, property := range []string{"fileId", "id", "ID", "Entity", "key", "state", "State", "quota", "putBy", "createdAt", "__proto__"} {
		u := uploadOf("e", "hello")
		u[property] = "indexed"
		x.want(http.StatusBadRequest, ann, "POST", "/v1/uploads", u)
	}
	twice := fmt.Sprintf(`{"entity":"f",%s`, must(json.Marshal(uploadOf("e", "hello")))[1:])
	if status, _ := x.call(ann, "POST", "/v1/uploads", "application/json", []byte(twice)); status != http.StatusBadRequest {
		t.Errorf("two entities: %d", status)
	}
	_, stored := x.call(ann, "POST", "/v1/files?entity=e&state=deleted&fileId="+noSuch, "text/plain", []byte("x"))
	want := []string{"contentType", "createdAt", "downloadUrl", "entity", "fileId", "sha256", "size", "state"}
	if got := slices.Sorted(maps.Keys(stored)); !slices.Equal(got, want) || stored["fileId"] == noSuch || stored["state"] != "indexed" {
		t.Errorf("%v: want %v", stored, want)
	}
}

func testStreams(t *testing.T) {
	x := serve(t, nil)
	all := token(t, "write:*")
	// The client sends the body only after the service has started to read it.
	client := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Minute}}
	defer client.CloseIdleConnections()
	begun, wait, answers := make(chan struct{}), make(chan struct{}), make(chan string)
	const streams = 4
	for range streams {
		r := must(http.NewRequestWithContext(t.Context(), "POST", x.url+"/v1/files?entity=e", &stalledBody{begun: begun, wait: wait}))
		r.Header.Set("Authorization", "Bearer "+all)
		r.Header.Set("Expect", "100-continue")
		go func() {
			resp, err := client.Do(r)
			if err != nil {
				answers <- err.Error()
				return
			}
			answers <- resp.Status
			_ = resp.Body.Close() // only the status matters
		}()
	}
	for range streams {
		<-begun
	}
	status, got := x.call(all, "POST", "/v1/files?entity=e", "text/plain", []byte("x"))
	if status != http.StatusTooManyRequests || !strings.HasPrefix(fmt.Sprint(got["detail"]), "too many concurrent uploads") {
		t.Errorf("one more: %d %v", status, got)
	}
	close(wait)
	for range streams {
		if got := <-answers; got != "201 Created" {
			t.Error(got)
		}
	}
	if status, got := x.call(all, "POST", "/v1/files?entity=e", "text/plain", []byte("x")); status != http.StatusCreated {
		t.Errorf("afterwards: %d %v", status, got)
	}
}

func testSpool(t *testing.T) {
	dir := t.TempDir()
	x := serve(t, func(c *filesapi.Config) {
		c.Spool, c.MaxSize, c.Files.Limit = dir, 1<<20, limit(20)
	})
	client := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Minute}}
	defer client.CloseIdleConnections()
	post := func(subject string, body io.Reader, length int64) string {
		r := must(http.NewRequestWithContext(t.Context(), "POST", x.url+"/v1/files?entity=e", body))
		r.Header.Set("Authorization", "Bearer "+token(t, "write:*", func(j jwt.Token) error { return j.Set(jwt.SubjectKey, subject) }))
		r.Header.Set("Expect", "100-continue")
		r.ContentLength = length
		resp, err := client.Do(r)
		if err != nil {
			return err.Error()
		}
		_ = resp.Body.Close() // only the status matters
		return resp.Status
	}
	unread := &stalledBody{} // blocks forever if it is read
	if got := post("ann", unread, 20*files.MinCharge+1); got != "403 Forbidden" {
		t.Errorf("more than the quota: %s", got)
	}
	begun, wait, answers := make(chan struct{}), make(chan struct{}), make(chan string)
	const all = 16
	for i := range all {
		go func() { answers <- post(fmt.Sprint("subject", i/4), &stalledBody{begun: begun, wait: wait}, -1) }()
	}
	for range all {
		<-begun
	}
	if names := must(os.ReadDir(dir)); runtime.GOOS != "windows" && len(names) > 0 {
		t.Errorf("%v: want files without a name", names)
	}
	if got := post("bob", strings.NewReader("x"), 1); got != "201 Created" {
		t.Errorf("one more: %s", got)
	}
	close(wait)
	for range all {
		if got := <-answers; got != "201 Created" {
			t.Error(got)
		}
	}
	if got := post("bob", strings.NewReader("x"), 1); got != "201 Created" {
		t.Errorf("afterwards: %s", got)
	}
}

// The Scan of a blockingStore sends the space to begun and then blocks on wait.
type blockingStore struct {
	store.Store
	begun chan string
	wait  chan struct{}
}

func (x *blockingStore) Scan(ctx context.Context, in store.Range) iter.Seq2[store.Record, error] {
	x.begun <- strings.TrimPrefix(in.Space, "entity/")
	<-x.wait
	return x.Store.Scan(ctx, in)
}

func testLists(t *testing.T) {
	x := serve(t, nil)
	slow := &blockingStore{x.records, make(chan string), make(chan struct{})}
	x.files.Index = files.NewIndex(slow)
	var wg sync.WaitGroup
	list := func(subject string) {
		ask := token(t, "read:*", func(j jwt.Token) error { return j.Set(jwt.SubjectKey, subject) })
		wg.Go(func() { x.want(http.StatusOK, ask, "GET", "/v1/entities/"+subject+"/files", nil) })
	}
	for range 5 {
		list("ann")
	}
	<-slow.begun
	<-slow.begun
	list("bob")
	anns := 2
	for <-slow.begun == "ann" {
		anns++
	}
	close(slow.wait)
	for range 5 - anns {
		<-slow.begun
	}
	wg.Wait()
	if anns != 2 {
		t.Errorf("%d lists of one subject ran concurrently, want 2", anns)
	}
}

type stalledBody struct {
	begun, wait chan struct{}
	read        bool
}

func (s *stalledBody) Read(p []byte) (int, error) {
	if !s.read {
		s.read = true
		s.begun <- struct{}{}
		return copy(p, "begin"), nil
	}
	<-s.wait
	return 0, io.EOF
}

func testScopes(t *testing.T) {
	x := serve(t, nil)
	all, reader, writer := token(t, "read:* write:*"), token(t, "read:e"), token(t, "write:e")
	_, stored := x.call(all, "POST", "/v1/files?entity=e", "text/plain", []byte("x"))
	id := stored["fileId"].(string)
	for _, c := range byID {
		who := reader
		if c.method == "GET" {
			who = writer
		}
		x.want(http.StatusNotFound, who, c.method, strings.ReplaceAll(c.path, "%", id), nil)
		if _, errs := x.query(who, strings.ReplaceAll(c.query, "%", id), nil); len(errs) != 1 || !strings.HasPrefix(errs[0], "404") {
			t.Errorf("%s: %q", c.query, errs)
		}
	}
	x.writes(writer, "e")
	x.want(http.StatusNotFound, reader, "DELETE", "/v1/entities/e/files", nil)
	x.want(http.StatusNotFound, reader, "POST", "/v1/uploads", uploadOf("e", "y"))
	x.want(http.StatusNotFound, writer, "GET", "/v1/entities/e/files", nil)
	for _, scope := range []string{"", "read", "*", "write:* ", "read:E", "read:e,write:e", "READ:e", "read:e*", "admin"} {
		x.want(http.StatusNotFound, token(t, scope), "GET", "/v1/files/"+id, nil)
	}
	for _, header := range []string{"X-HTTP-Method-Override", "X-Method-Override", "X-HTTP-Method"} {
		x.want(http.StatusOK, reader, "GET", "/v1/files/"+id, nil, header, "DELETE")
	}
	x.want(http.StatusOK, reader, "GET", "/v1/files/"+id, nil)
}

// A writer without read access must not see where to download a file.
func (x *testAPI) writes(writer, entity string) {
	x.t.Helper()
	_, stored := x.call(writer, "POST", "/v1/files?entity="+entity, "text/plain", []byte("secret"), "Idempotency-Key", "secret")
	id := stored["fileId"].(string)
	answers := []any{stored}
	answers = append(answers, x.want(http.StatusCreated, writer, "POST", "/v1/uploads", uploadOf(entity, "secret"), "Idempotency-Key", "secret")["file"])
	for _, call := range [][2]string{{"POST", "/complete"}, {"DELETE", ""}, {"POST", "/undelete"}} {
		answers = append(answers, x.want(http.StatusOK, writer, call[0], "/v1/files/"+id+call[1], nil))
	}
	for _, field := range []string{"complete", "deleteFile", "undelete"} {
		data, errs := x.query(writer, fmt.Sprintf("mutation { %s(fileId: %q) { fileId downloadURL } }", field, id), nil)
		if len(errs) > 0 {
			x.t.Error(errs)
		}
		answers = append(answers, data[field])
	}
	for _, answer := range answers {
		f := answer.(map[string]any)
		if f["fileId"] != id || f["downloadUrl"] != nil || f["downloadURL"] != nil {
			x.t.Errorf("%v: want no URL to download %s", f, id)
		}
	}
}

func testFlood(t *testing.T) {
	x := serve(t, nil)
	ann := token(t, "read:e write:e")
	for range 5 {
		x.want(http.StatusCreated, ann, "POST", "/v1/uploads", uploadOf("e", strings.Repeat("a", 100)), "Idempotency-Key", "one")
	}
	var mu sync.Mutex
	statuses := map[int]int{}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			status, _ := x.call(ann, "POST", "/v1/uploads", "application/json", must(json.Marshal(uploadOf("e", strings.Repeat("b", 100)))), "Idempotency-Key", fmt.Sprint(i))
			mu.Lock()
			defer mu.Unlock()
			statuses[status]++
		})
	}
	wg.Wait()
	if diff := cmp.Diff(map[int]int{http.StatusCreated: 9, http.StatusForbidden: 11}, statuses); diff != "" {
		t.Error(diff)
	}
}

func testForgery(t *testing.T) {
	asked := make(chan string, 100)
	evil := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.Path }))
	defer evil.Close()
	x := serve(t, nil)
	made := must(jwt.NewBuilder().Subject("ann").Expiration(time.Now().Add(time.Hour)).Claim("scope", "read:*").Build())
	key := must(rsa.GenerateKey(rand.Reader, 2048))
	headers := jws.NewHeaders()
	for name, value := range map[string]any{
		jws.JWKSetURLKey: evil.URL + "/jku", jws.X509URLKey: evil.URL + "/x5u", jws.KeyIDKey: evil.URL + "/kid", jws.JWKKey: must(jwk.Import(key.Public())),
	} {
		if err := headers.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	signed := string(must(jwt.Sign(made, jwt.WithKey(jwa.RS256(), key, jws.WithProtectedHeaders(headers)))))
	x.want(http.StatusUnauthorized, signed, "GET", "/v1/entities/e/files", nil)
	all := token(t, "read:* write:*")
	x.want(http.StatusBadRequest, all, "POST", "/v1/uploads", uploadOf(evil.URL, "hello"))
	x.want(http.StatusNotFound, all, "GET", "/v1/files/"+strings.ReplaceAll(evil.URL, "/", "%2F"), nil)
	signedUpload := x.want(http.StatusCreated, all, "POST", "/v1/uploads", uploadOf("e", "hello"), "Host", evil.URL, "X-Forwarded-Host", evil.URL, "Referer", evil.URL)
	if strings.Contains(fmt.Sprint(signedUpload), evil.URL) {
		t.Errorf("%v has a host that the client named", signedUpload)
	}
	select {
	case path := <-asked:
		t.Errorf("it asked for %s", path)
	default:
	}
}

func testHeaders(t *testing.T) {
	x := serve(t, nil)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, test := range []struct {
		method, path string
		want         int
	}{
		{"GET", "/v1/entities/e/files", 200},
		{"GET", "/v1/files/" + noSuch, 404},
		{"GET", "/v1//files/x", 404},
		{"GET", "/v1/../v1/files", 404},
		{"GET", "/v1/files/", 404},
		{"OPTIONS", "/v1/files", 405},
		{"TRACE", "/v1/files", 405},
		{"FOO", "/v1/uploads", 405},
	} {
		r := must(http.NewRequestWithContext(t.Context(), test.method, x.url+test.path, nil))
		r.Header.Set("Authorization", "Bearer "+token(t, "read:*"))
		r.Header.Set("Origin", "https://evil.example")
		resp := must(client.Do(r))
		var b bytes.Buffer
		if _, err := b.ReadFrom(resp.Body); err != nil {
			t.Error(err)
		}
		_ = resp.Body.Close() // the body was read completely
		got := resp.Header
		if resp.StatusCode != test.want || got.Get("X-Content-Type-Options") != "nosniff" || got.Get("Cache-Control") != "no-store" || !json.Valid(b.Bytes()) {
			t.Errorf("%s %s: %d %v %s: want %d", test.method, test.path, resp.StatusCode, got, &b, test.want)
		}
		for _, name := range []string{"Server", "X-Powered-By", "Access-Control-Allow-Origin", "Location", "Set-Cookie"} {
			if got.Get(name) != "" {
				t.Errorf("%s %s has a header %s", test.method, test.path, name)
			}
		}
	}
}

func testInventory(t *testing.T) {
	x := serve(t, nil)
	all := token(t, "read:* write:*")
	for path, item := range x.doc.Paths.PathItems.FromOldest() {
		allowed := slices.Sorted(item.GetOperations().KeysFromOldest())
		for i, m := range allowed {
			allowed[i] = strings.ToUpper(m)
		}
		path = strings.NewReplacer("{id}", noSuch, "{entity}", "e").Replace(path)
		for _, method := range []string{"DELETE", "GET", "PATCH", "POST", "PUT"} {
			status, got := x.call(all, method, path, "", nil)
			if slices.Contains(allowed, method) == (status == http.StatusMethodNotAllowed) || status == http.StatusNotFound && got["detail"] != "no such file" {
				t.Errorf("%s %s: %d %v: the document allows %v", method, path, status, got, allowed)
			}
		}
	}
	for _, path := range []string{"/", "/v0/files", "/v2/files", "/v1", "/v1/users", "/debug/pprof/", "/debug/vars", "/metrics", "/graphiql", "/admin", "/.env", "/.git/config"} {
		x.want(http.StatusNotFound, all, "GET", path, nil)
	}
}

type faultyObjects struct {
	files.Objects
	seen files.ObjectInfo
	err  error
}

func (o *faultyObjects) Stat(context.Context, string) (files.ObjectInfo, error) { return o.seen, o.err }

func testStore(t *testing.T) {
	x := serve(t, nil)
	ann := token(t, "read:e write:e")
	store := &faultyObjects{Objects: x.files.Objects}
	x.files.Objects = store
	id := x.want(http.StatusCreated, ann, "POST", "/v1/uploads", uploadOf("e", "hello"))["file"].(map[string]any)["fileId"].(string)
	f := must(x.files.Get(t.Context(), id))
	good := files.ObjectInfo{Found: true, Size: f.Size, SHA256: f.SHA256, Date: time.Now()}
	longer, other, none := good, good, good
	longer.Size++
	other.SHA256[0]++
	none.SHA256 = [32]byte{}
	for _, seen := range []files.ObjectInfo{longer, other, none} {
		store.seen = seen
		if got := x.want(http.StatusOK, ann, "POST", "/v1/files/"+id+"/complete", nil); got["state"] != "pending" {
			t.Errorf("%+v: %v", seen, got)
		}
	}
	store.err = errors.New("<Error>AKIASECRET at 10.0.0.1</Error>")
	got := x.want(http.StatusServiceUnavailable, ann, "POST", "/v1/files/"+id+"/complete", nil)
	_, errs := x.query(ann, `mutation { complete(fileId: "`+id+`") { state } }`, nil)
	if text := fmt.Sprint(got, errs); strings.Contains(text, "AKIA") || strings.Contains(text, "10.0.0.1") || !strings.Contains(text, "503") {
		t.Error(text)
	}
	store.seen, store.err = good, nil
	if got := x.want(http.StatusOK, ann, "POST", "/v1/files/"+id+"/complete", nil); got["state"] != "indexed" {
		t.Errorf("%v", got)
	}
}
