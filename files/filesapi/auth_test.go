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

func rawToken(header string) string {
	claims := fmt.Sprintf(`{"sub":"ann","scope":"read:*","exp":%d}`, time.Now().Add(time.Hour).Unix())
	text := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func verifiesBy(claims filesapi.Claims, token string) bool {
	tokens := must(filesapi.NewTokens(must(filesapi.Secret(secret)), claims))
	return verifies(tokens, token)
}

func TestTokenHeader(t *testing.T) {
	for header, want := range map[string]bool{
		`{"alg":"HS256"}`:                           true,
		`{"alg":"HS256","x":1}`:                     true,
		`{"typ":"JWT"}`:                             false,
		`{"alg":null}`:                              false,
		`{"alg":""}`:                                false,
		`{"alg":"HS256","crit":["x"],"x":1}`:        false,
		`{"alg":"HS256","crit":[]}`:                 false,
		`{"alg":"HS256","crit":["b64"],"b64":true}`: false,
	} {
		if got := verifiesBy(filesapi.Claims{}, rawToken(header)); got != want {
			t.Errorf("%s: accepted: %t", header, got)
		}
	}
}

func TestIssuer(t *testing.T) {
	const issuer = "https://issuer.example/"
	from := func(name string) string {
		return token(t, "read:*", func(j jwt.Token) error { return j.Set(jwt.IssuerKey, name) })
	}
	for name, test := range map[string]struct {
		token string
		want  bool
	}{
		"its token":             {from(issuer), true},
		"its token, issued":     {must(filesapi.SignToken(secret, filesapi.TokenSpec{Subject: "ann", Issuer: issuer, Life: time.Hour})), true},
		"without the last byte": {from("https://issuer.example"), false},
		"another issuer":        {from("https://other.example/"), false},
		"an empty issuer":       {from(""), false},
		"no issuer":             {token(t, "read:*"), false},
	} {
		if got := verifiesBy(filesapi.Claims{Issuer: issuer}, test.token); got != test.want {
			t.Errorf("%s: accepted: %t", name, got)
		}
		if !verifiesBy(filesapi.Claims{}, test.token) {
			t.Errorf("%s: refused, although no issuer is configured", name)
		}
	}
}

func TestBearerIsCaseInsensitive(t *testing.T) {
	tokens := must(filesapi.NewTokens(must(filesapi.Secret(secret)), filesapi.Claims{}))
	made := token(t, "read:*")
	for header, want := range map[string]bool{
		"Bearer " + made: true, "bearer " + made: true, "BEARER  " + made: true,
		made: false, "Bearer": false, "Basic " + made: false, "Bearer" + made: false, "": false,
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Authorization", header)
		if _, err := tokens.Verify(r); (err == nil) != want {
			t.Errorf("%.10q: %v: want it accepted: %t", header, err, want)
		}
	}
}

type unreadBody struct{ *testing.T }

func (u unreadBody) Read([]byte) (int, error) {
	u.Helper()
	u.Error("the body is read")
	return 0, io.EOF
}

func TestContentTypeIsCheckedBeforeBody(t *testing.T) {
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
		r := httptest.NewRequestWithContext(t.Context(), "POST", test.path, unreadBody{t})
		r.Header.Set("Authorization", "Bearer "+token(t, "write:*"))
		r.Header.Set("Content-Type", test.contentType)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != test.want {
			t.Errorf("%s, %q: %d %s: want %d", test.path, test.contentType, w.Code, w.Body, test.want)
		}
	}
}
