package demo

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

func serveFrontend(t *testing.T) string {
	t.Helper()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Method, " ", r.URL, " ", r.Header.Get("Authorization"))
	}))
	t.Cleanup(api.Close)
	s, err := newStore(func(change) {}, filesBucket)
	if err != nil {
		t.Fatal(err)
	}
	f := &frontend{secret: []byte(strings.Repeat("s", 32)), apis: func() []string { return []string{strings.TrimPrefix(api.URL, "http://")} }}
	h, err := f.handler(s3API(s))
	if err != nil {
		t.Fatal(err)
	}
	e, err := listen(t.Context(), "127.0.0.1:0", h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.close(); err != nil {
			t.Error(err)
		}
	})
	return e.url
}

// ask also sets "Host" from headers.
func ask(t *testing.T, method, url, body string, headers map[string]string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	r.Host = r.Header.Get("Host")
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(text)
}

func TestFrontendRefusesOtherOrigins(t *testing.T) {
	url := serveFrontend(t)
	own := map[string]string{"Origin": url, "Sec-Fetch-Site": "same-origin"}
	for _, c := range []struct {
		what, method, path string
		headers            map[string]string
		want               int
	}{
		{"the page itself", "POST", "/token", own, 200},
		{"a program", "POST", "/token", nil, 200},
		{"a page of another site", "POST", "/token", map[string]string{"Origin": "https://example.org", "Sec-Fetch-Site": "cross-site"}, 403},
		{"a page of another port", "POST", "/token", map[string]string{"Origin": "http://127.0.0.1:1", "Sec-Fetch-Site": "same-site"}, 403},
		{"a page without an origin", "POST", "/token", map[string]string{"Origin": "null"}, 403},
		{"a cross-site request without an origin", "POST", "/token", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		{"a name that points here", "POST", "/token", map[string]string{"Host": "rebound.example.org"}, 403},
		{"such a name that is its own origin", "POST", "/token", map[string]string{"Host": "rebound.example.org", "Origin": "http://rebound.example.org"}, 403},
		{"the page by such a name", "GET", "/", map[string]string{"Host": "rebound.example.org"}, 403},
		{"the page by another name of this machine", "GET", "/", map[string]string{"Host": "localhost:1"}, 307},
		{"a page by another name", "POST", "/token", map[string]string{"Host": "localhost:1", "Origin": "http://localhost:1"}, 307},
		{"a link", "GET", "/token", nil, 404},
		{"a foreign page that reads objects", "GET", "/uploads/files/x", map[string]string{"Origin": "https://example.org"}, 403},
		{"a foreign page that writes objects", "PUT", "/uploads/files/x", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		{"its own page that writes objects", "PUT", "/uploads/files/x", own, 200},
		{"a foreign page that asks a service", "DELETE", "/v1/files/x", map[string]string{"Origin": "https://example.org"}, 403},
	} {
		if res, text := ask(t, c.method, url+c.path, "", c.headers); res.StatusCode != c.want {
			t.Errorf("%s: %s %s is answered with %d, want %d: %s", c.what, c.method, c.path, res.StatusCode, c.want, text)
		}
	}
}

func TestFrontendForwards(t *testing.T) {
	url := serveFrontend(t)
	for _, path := range []string{"/v1/files/x?a=b", "/graphql", "/openapi.yaml"} {
		if _, text := ask(t, "POST", url+path, "", map[string]string{"Authorization": "Bearer t"}); text != "POST "+path+" Bearer t" {
			t.Errorf("the service was asked %q", text)
		}
	}
}

func TestFrontendPolicies(t *testing.T) {
	url := serveFrontend(t)
	ask(t, "PUT", url+"/uploads/files/evil", "<script>alert(1)</script>", map[string]string{"Content-Type": "text/html"})
	for path, want := range map[string]string{"/": pagePolicy, "/uploads/files/evil": "sandbox", "/uploads/files/none": "sandbox"} {
		res, _ := ask(t, "GET", url+path, "", nil)
		if got := res.Header.Get("Content-Security-Policy"); got != want || res.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("GET %s: policy %q, want %q, and nosniff: %v", path, got, want, res.Header)
		}
	}
}

func TestVerifySigned(t *testing.T) {
	url := serveFrontend(t)
	client := s3.NewPresignClient(s3.New(s3.Options{
		BaseEndpoint: &url, Region: region, UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(accessKey, accessKey, ""),
	}), s3.WithPresignExpires(time.Minute))
	body := "meow"
	put, err := client.PresignPutObject(context.Background(), &s3.PutObjectInput{
		Bucket: aws.String(filesBucket), Key: aws.String("files/ä b+c"), ContentType: aws.String("image/png"), ContentLength: aws.Int64(4),
	})
	if err != nil {
		t.Fatal(err)
	}
	png := map[string]string{"Content-Type": "image/png"}
	for _, c := range []struct {
		what, url, body string
		headers         map[string]string
		want            int
	}{
		{"another length", put.URL, body + "!", png, 403},
		{"another type", put.URL, body, map[string]string{"Content-Type": "text/html"}, 403},
		{"another key", strings.Replace(put.URL, "files/", "other/", 1), body, png, 403},
		{"a longer life", strings.Replace(put.URL, "Expires=60", "Expires=600", 1), body, png, 403},
		{"another sum", put.URL, body, map[string]string{"Content-Type": "image/png", sumHeader: sumOf([]byte("woof"))}, 400},
		{"what was signed", put.URL, body, png, 200},
	} {
		if res, text := ask(t, "PUT", c.url, c.body, c.headers); res.StatusCode != c.want {
			t.Errorf("%s: %d, want %d: %s", c.what, res.StatusCode, c.want, text)
		}
	}
	get, err := client.PresignGetObject(context.Background(), &s3.GetObjectInput{Bucket: aws.String(filesBucket), Key: aws.String("files/ä b+c")})
	if err != nil {
		t.Fatal(err)
	}
	if _, text := ask(t, "GET", get.URL, "", nil); text != body {
		t.Errorf("GET returns %q", text)
	}
	r := httptest.NewRequest("GET", get.URL, nil)
	if !signatureValid(r, time.Now()) || signatureValid(r, time.Now().Add(2*time.Minute)) {
		t.Error("the URL fits when it is over, or does not before")
	}
}

func TestGuideShowsPageScript(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/FILES.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := page.ReadFile("page/upload.js")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(guide), "```js\n"+string(code)+"```\n") {
		t.Error("docs/FILES.md does not show page/upload.js as it is")
	}
}
