package webhooksource

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// The Standard Webhooks specification requires this length.
const minSecretBytes = 24

type authenticator struct {
	// Digests of equal length do not leak the token's length in a comparison.
	tokens    [][sha256.Size]byte
	signature *standardwebhooks.Webhook // or nil
}

func newAuthenticator(token, secret string) (authenticator, error) {
	var auth authenticator
	if token != "" {
		headers, err := acceptedHeaders(token)
		if err != nil {
			return authenticator{}, err
		}
		for _, h := range headers {
			auth.tokens = append(auth.tokens, sha256.Sum256([]byte(h)))
		}
	}
	if secret != "" {
		hook, err := newSignature(secret)
		if err != nil {
			return authenticator{}, err
		}
		auth.signature = hook
	}
	return auth, nil
}

// MinIO sends a token of two words unchanged, puts "Bearer " before one word, and sends no header for three
// words: internal/event/target/webhook.go, send.
func acceptedHeaders(token string) ([]string, error) {
	for _, c := range []byte(token) {
		if c < ' ' || c > '~' {
			return nil, errors.New("webhook: the token has a character that no HTTP header can carry: use letters and digits")
		}
	}
	switch words := strings.Fields(token); len(words) {
	case 1:
		return []string{words[0], "Bearer " + words[0]}, nil
	case 2:
		return []string{strings.TrimSpace(token)}, nil
	}
	return nil, errors.New(`webhook: the token must be one word, or a scheme and one word such as "Bearer x"`)
}

func newSignature(secret string) (*standardwebhooks.Webhook, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || len(key) < minSecretBytes {
		return nil, errors.New("webhook: the secret must be whsec_ and at least 24 random bytes in base64: " +
			`make one with: echo "whsec_$(openssl rand -base64 32)"`)
	}
	return standardwebhooks.NewWebhookRaw(key)
}

func (a *authenticator) allowsAll() bool { return a.tokens == nil && a.signature == nil }

// checkHeader takes the same time for every wrong token.
func (a *authenticator) checkHeader(h http.Header) bool {
	if a.allowsAll() {
		return true
	}
	sent := sha256.Sum256([]byte(h.Get("Authorization")))
	match := 0
	for _, want := range a.tokens {
		match |= subtle.ConstantTimeCompare(sent[:], want[:])
	}
	return match == 1
}

func (a *authenticator) hasSignature(h http.Header) bool {
	return a.signature != nil && h.Get(standardwebhooks.HeaderWebhookSignature) != ""
}

func (a *authenticator) checkSignature(h http.Header, body []byte) bool {
	return a.signature != nil && a.signature.Verify(body, h) == nil
}
