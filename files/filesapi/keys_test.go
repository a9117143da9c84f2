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
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"
	"github.com/lestrrat-go/jwx/v3/jwt"

	"github.com/pawlhq/pawl/files/filesapi"
	"github.com/pawlhq/pawl/internal/virtualtime"
)

// issuer serves a key set in the test process, and uses the test's clock.
type issuer struct {
	mu      sync.Mutex
	fetched int
	serve   http.HandlerFunc
}

func (s *issuer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.fetched++
	serve := s.serve
	s.mu.Unlock()
	w := httptest.NewRecorder()
	serve(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	resp := w.Result()
	resp.Request = r
	return resp, nil
}

func (s *issuer) has(keys ...any) {
	s.set(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(marshal(map[string]any{"keys": keys})) })
}

func (s *issuer) answers(status int, body string) {
	s.set(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	})
}

func (s *issuer) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fetched
}

func (s *issuer) set(serve http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serve = serve
}

const keysURL = "https://issuer.example/keys"

func public(private any, fields ...any) jwk.Key {
	key := must(jwk.PublicKeyOf(must(jwk.Import(private))))
	for i := 0; i < len(fields); i += 2 {
		if err := key.Set(fields[i].(string), fields[i+1]); err != nil {
			panic(err)
		}
	}
	return key
}

func signed(alg jwa.SignatureAlgorithm, key any, kid string) string {
	headers := jws.NewHeaders()
	if err := headers.Set(jws.KeyIDKey, kid); err != nil {
		panic(err)
	}
	token := must(jwt.NewBuilder().Subject("ann").Expiration(time.Now().Add(48 * time.Hour)).Build())
	return string(must(jwt.Sign(token, jwt.WithKey(alg, key, jws.WithProtectedHeaders(headers)))))
}

func verifies(tokens *filesapi.Tokens, token string) bool {
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	_, err := tokens.Verify(r)
	return err == nil
}

func TestRemoteKeySet(t *testing.T) {
	first, second := must(rsa.GenerateKey(rand.Reader, 2048)), must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	virtualtime.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer func() {
			cancel()
			synctest.Wait()
		}()
		var log bytes.Buffer
		from := &issuer{}
		from.has(public(first, "kid", "1"))
		tokens := must(filesapi.NewTokensAt(ctx, keysURL, filesapi.Claims{}, from, slog.New(slog.NewTextHandler(&log, nil))))
		old, next := signed(jwa.RS256(), first, "1"), signed(jwa.ES256(), second, "2")
		want := func(when string, fetched int, oldOK, nextOK bool) {
			t.Helper()
			synctest.Wait()
			if o, n := verifies(tokens, old), verifies(tokens, next); o != oldOK || n != nextOK || from.count() != fetched {
				t.Errorf("%s: the old key %t, the next %t, %d fetches: want %t, %t, %d", when, o, n, from.count(), oldOK, nextOK, fetched)
			}
		}
		want("the first unknown key causes a fetch", 2, true, false)
		for range 100 {
			verifies(tokens, next)
		}
		want("100 more requests cause no fetch", 2, true, false)
		from.has(public(second, "kid", "2"))
		time.Sleep(20 * time.Second)
		want("too early", 2, true, false)
		time.Sleep(11 * time.Second)
		want("the set has changed, and only the second token causes a fetch", 3, true, true)
		time.Sleep(31 * time.Second)
		want("the old key is no longer in the set", 4, false, true)
		for _, down := range []func(){
			func() { from.answers(http.StatusInternalServerError, "") },
			func() { from.answers(http.StatusOK, `{"keys": []}`) },
			func() { from.answers(http.StatusOK, `<html>`) },
			func() {
				from.answers(http.StatusOK, fmt.Sprintf(`{"keys": [%s], "x": "%s"}`, marshal(public(first, "kid", "1")), strings.Repeat("x", 2<<20)))
			},
			func() {
				from.set(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/other", http.StatusFound) })
			},
			func() { from.set(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }) },
		} {
			down()
			before := from.count()
			time.Sleep(6 * time.Minute)
			if !verifies(tokens, next) || from.count() == before || from.count() > before+2 {
				t.Errorf("the issuer is down: %d fetches", from.count()-before)
			}
		}
		synctest.Wait()
		if strings.Count(log.String(), "keeping the previous one") < 6 {
			t.Errorf("the log says %s", &log)
		}
		from.has(public(first, "kid", "1"))
		time.Sleep(6 * time.Minute)
		synctest.Wait()
		if verifies(tokens, next) || !verifies(tokens, old) {
			t.Error("the key set was not refreshed without requests")
		}
	})
}

func TestSlowKeySetServer(t *testing.T) {
	private := must(rsa.GenerateKey(rand.Reader, 2048))
	virtualtime.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer func() {
			cancel()
			synctest.Wait()
		}()
		from := &issuer{}
		from.has(public(must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)), "kid", "1"))
		tokens := must(filesapi.NewTokensAt(ctx, keysURL, filesapi.Claims{}, from, slog.New(slog.DiscardHandler)))
		good := marshal(map[string]any{"keys": []any{public(private, "kid", "2")}})
		from.set(func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(5 * time.Second)
			_, _ = w.Write(good)
		})
		answers := make(chan bool)
		for range 50 {
			go func() { answers <- verifies(tokens, signed(jwa.RS256(), private, "2")) }()
		}
		for range 50 {
			if !<-answers {
				t.Error("a token with a new key does not hold")
			}
		}
		if from.count() != 2 {
			t.Errorf("%d fetches", from.count())
		}
	})
}

func TestKeySetAtStart(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer func() {
			cancel()
			synctest.Wait()
		}()
		from := &issuer{}
		from.answers(http.StatusNotFound, "")
		_, err := filesapi.NewTokensAt(ctx, keysURL, filesapi.Claims{}, from, slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), "404") || !strings.Contains(err.Error(), keysURL) || from.count() != 3 {
			t.Errorf("%v after %d fetches", err, from.count())
		}
		key := public(must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)))
		good := marshal(map[string]any{"keys": []any{key}})
		from.set(func(w http.ResponseWriter, _ *http.Request) {
			if from.count() < 6 {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			_, _ = w.Write(good)
		})
		if _, err := filesapi.NewTokensAt(ctx, keysURL, filesapi.Claims{}, from, slog.New(slog.DiscardHandler)); err != nil {
			t.Error(err)
		}
		for _, at := range []string{"http://issuer.example/keys", "http://10.0.0.1/keys", "ftp://127.0.0.1/", "https:///keys", "http://127.0.0.1.example/", "keys.json", "http://localhost.example/", "https://a b/"} {
			if _, err := filesapi.NewTokensAt(ctx, at, filesapi.Claims{}, from, slog.New(slog.DiscardHandler)); err == nil || from.count() != 6 {
				t.Errorf("%s: %v", at, err)
			}
		}
		for i, at := range []string{"http://127.0.0.1:1/keys", "http://localhost/keys", "http://[::1]:8/keys"} {
			if _, err := filesapi.NewTokensAt(ctx, at, filesapi.Claims{}, from, slog.New(slog.DiscardHandler)); err != nil || from.count() != 7+i {
				t.Errorf("%s: %v", at, err)
			}
		}
	})
}

func TestKeySetKeyTypes(t *testing.T) {
	private, curve := must(rsa.GenerateKey(rand.Reader, 2048)), must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	large := must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))
	shared := must(jwk.Import(secret))
	if err := errors.Join(shared.Set("alg", jwa.HS256()), shared.Set("kid", "k")); err != nil {
		t.Fatal(err)
	}
	der := must(x509.MarshalPKIXPublicKey(private.Public()))
	asSecret := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	unsigned := string(must(jwt.Sign(must(jwt.NewBuilder().Subject("ann").Expiration(time.Now().Add(time.Hour)).Build()), jwt.WithInsecureNoSignature())))
	rs := signed(jwa.RS256(), private, "k")
	for name, test := range map[string]struct {
		keys  []any
		token string
		want  bool
	}{
		"RS256":                    {[]any{public(private, "kid", "k", "alg", "RS256", "use", "sig")}, rs, true},
		"RS256 without alg":        {[]any{public(private, "kid", "k")}, rs, true},
		"ES256":                    {[]any{public(curve, "alg", "ES256")}, signed(jwa.ES256(), curve, "k"), true},
		"beside others":            {[]any{shared, public(large), public(private, "use", "enc"), public(private)}, rs, true},
		"beside unknown kinds":     {[]any{map[string]any{"kty": "AKP", "alg": "ML-DSA-44", "pub": "AA"}, "no key", public(private)}, rs, true},
		"a private key":            {[]any{must(jwk.Import(private))}, rs, true},
		"a secret":                 {[]any{shared, public(private)}, signed(jwa.HS256(), secret, "k"), false},
		"public key as secret":     {[]any{public(private, "kid", "k")}, signed(jwa.HS256(), asSecret, "k"), false},
		"DER as secret":            {[]any{public(private, "kid", "k")}, signed(jwa.HS256(), der, "k"), false},
		"other padding":            {[]any{public(private, "kid", "k")}, signed(jwa.PS256(), private, "k"), false},
		"a longer sum":             {[]any{public(private, "kid", "k")}, signed(jwa.RS512(), private, "k"), false},
		"a larger curve":           {[]any{public(large, "kid", "k"), public(private)}, signed(jwa.ES384(), large, "k"), false},
		"a key for encryption":     {[]any{public(private, "kid", "k", "use", "enc"), public(curve)}, rs, false},
		"a key for another":        {[]any{public(private, "kid", "k", "alg", "RS512"), public(curve)}, rs, false},
		"none":                     {[]any{public(private, "kid", "k")}, unsigned, false},
		"an unknown key":           {[]any{public(private, "kid", "k")}, signed(jwa.RS256(), must(rsa.GenerateKey(rand.Reader, 2048)), "other"), false},
		"an unknown key, same kid": {[]any{public(private, "kid", "k")}, signed(jwa.RS256(), must(rsa.GenerateKey(rand.Reader, 2048)), "k"), false},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			from := &issuer{}
			from.has(test.keys...)
			tokens, err := filesapi.NewTokensAt(ctx, keysURL, filesapi.Claims{}, from, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			if got := verifies(tokens, test.token); got != test.want {
				t.Errorf("it holds: %t", got)
			}
		})
	}
	virtualtime.Test(t, func(t *testing.T) {
		for name, keys := range map[string][]any{"a secret": {shared}, "no signatures": {public(private, "use", "enc")}, "nothing": {}} {
			from := &issuer{}
			from.has(keys...)
			if _, err := filesapi.NewTokensAt(t.Context(), keysURL, filesapi.Claims{}, from, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(fmt.Sprint(err), "RS256 or ES256") {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func marshal(v any) []byte { return must(json.Marshal(v)) }
