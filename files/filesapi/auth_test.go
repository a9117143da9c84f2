package filesapi_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwt"

	"github.com/pawlhq/pawl/files/filesapi"
)

// rawToken signs a token with a header that the library would not write.
func rawToken(header string) string {
	claims := fmt.Sprintf(`{"sub":"ann","scope":"read:*","exp":%d}`, time.Now().Add(time.Hour).Unix())
	text := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// TestIssuer: a token of another issuer, or of none, is refused if an issuer is named.
func TestIssuer(t *testing.T) {
	const issuer = "https://issuer.example/"
	x := serve(t, func(c *filesapi.Config) {
		c.Tokens = must(filesapi.NewTokens(must(filesapi.Secret(secret)), filesapi.Claims{Issuer: issuer}))
	})
	from := func(name string) string {
		return token(t, "read:*", func(j jwt.Token) error { return j.Set(jwt.IssuerKey, name) })
	}
	x.want(http.StatusOK, from(issuer), "GET", "/v1/entities/e/files", nil)
	x.want(http.StatusUnauthorized, from("https://issuer.example"), "GET", "/v1/entities/e/files", nil)
	x.want(http.StatusUnauthorized, from(""), "GET", "/v1/entities/e/files", nil)
	x.want(http.StatusUnauthorized, token(t, "read:*"), "GET", "/v1/entities/e/files", nil)
	made := must(filesapi.Issue(secret, filesapi.Grant{Subject: "ann", Issuer: issuer, Scopes: []string{"read:*"}, Life: time.Hour}))
	x.want(http.StatusOK, made, "GET", "/v1/entities/e/files", nil)
}

// TestBearer: the scheme of the header Authorization counts in any case.
func TestBearer(t *testing.T) {
	tokens := must(filesapi.NewTokens(must(filesapi.Secret(secret)), filesapi.Claims{}))
	made := token(t, "read:*")
	for header, want := range map[string]bool{
		"Bearer " + made: true, "bearer " + made: true, "BEARER  " + made: true,
		made: false, "Bearer": false, "Bearer ": false, "Basic " + made: false, "Bearer" + made: false, "": false,
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Authorization", header)
		if _, err := tokens.Verify(r); (err == nil) != want {
			t.Errorf("%.10q: %v: want it accepted: %t", header, err, want)
		}
	}
}

// unread is a body that must not be read.
type unread struct{ *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.Helper()
	u.Error("the body is read")
	return 0, io.EOF
}

// TestContentTypeBeforeBody: a request whose content type is refused is answered before
// its body is read.
func TestContentTypeBeforeBody(t *testing.T) {
	h, _ := fullPage(t, 1)
	for _, test := range []struct {
		path, contentType string
		want              int
	}{
		{"/v1/files?entity=e", "multipart/form-data; boundary=x", http.StatusUnsupportedMediaType},
		{"/v1/files?entity=e", "a b/c", http.StatusUnprocessableEntity},
		{"/v1/files?entity=e", "text/plain; charset=\"\u00fc\"", http.StatusUnprocessableEntity},
		{"/v1/files?entity=e", "text/" + strings.Repeat("x", 200), http.StatusUnprocessableEntity},
		{"/v1/uploads", "text/plain", http.StatusUnsupportedMediaType},
		{"/v1/uploads/parts", "", http.StatusUnsupportedMediaType},
		{"/graphql", "application/graphql", http.StatusUnsupportedMediaType},
	} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", test.path, unread{t})
		r.Header.Set("Authorization", "Bearer "+token(t, "write:*"))
		r.Header.Set("Content-Type", test.contentType)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != test.want {
			t.Errorf("%s, %q: %d %s: want %d", test.path, test.contentType, w.Code, w.Body, test.want)
		}
	}
}
