package filesapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"
	"github.com/lestrrat-go/jwx/v3/jwt"
)

// An entity name is part of scopes and URL paths, so it must not be "." or "..".
var entityPattern = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$`)

// Subject is the sender of a request, with the scopes of its token.
type Subject struct {
	Name   string
	scopes []string
}

func (s *Subject) may(do, entity string) bool {
	return slices.Contains(s.scopes, do+":"+entity) || slices.Contains(s.scopes, do+":*")
}

// Tokens verifies JSON Web Tokens in the Authorization header, signed with HS256, RS256 or ES256. A
// token needs exp, sub and a scope of words such as read:ENTITY or write:*.
type Tokens struct {
	keys   func() jwk.Set
	claims Claims
	skew   time.Duration
	// refresh fetches the keys again if a token could not be verified, and reports whether to verify
	// it again. Nil means that the keys never change.
	refresh func(ctx context.Context, token string) bool
}

// Claims are the claims that a token must have. Empty fields are not checked.
type Claims struct {
	Audience string // must be in the token's aud
	Issuer   string // must equal the token's iss
}

// NewTokens returns a verifier with fixed keys. Each key must have an alg.
func NewTokens(keys jwk.Set, claims Claims) (*Tokens, error) {
	for i := range keys.Len() {
		key, _ := keys.Key(i)
		alg, ok := key.Algorithm()
		if !ok || !slices.Contains([]string{"HS256", "RS256", "ES256"}, alg.String()) {
			return nil, fmt.Errorf("filesapi: key %d of the key set: alg must be HS256, RS256 or ES256", i)
		}
	}
	if keys.Len() == 0 {
		return nil, errors.New("filesapi: the key set is empty")
	}
	return &Tokens{keys: func() jwk.Set { return keys }, claims: claims, skew: time.Minute}, nil
}

// Secret returns a key set with one shared secret for HS256, of at least 32 bytes.
func Secret(secret []byte) (jwk.Set, error) {
	if len(secret) < 32 {
		return nil, errors.New("filesapi: the secret of tokens must have 32 bytes or more")
	}
	key, err := jwk.Import(secret)
	if err != nil {
		return nil, err
	}
	if err := key.Set(jwk.AlgorithmKey, jwa.HS256()); err != nil {
		return nil, err
	}
	set := jwk.NewSet()
	return set, set.AddKey(key)
}

// Only the log has the reason of errInvalidToken.
var errInvalidToken = errors.New("a valid bearer token is required")

// Verify returns the subject of a request's token.
func (t *Tokens) Verify(r *http.Request) (*Subject, error) {
	scheme, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	text = strings.TrimLeft(text, " ")
	if !strings.EqualFold(scheme, "Bearer") || text == "" || len(text) > 8<<10 {
		return nil, errInvalidToken
	}
	token, err := t.parse(text)
	if err != nil && t.refresh != nil && t.refresh(r.Context(), text) {
		token, err = t.parse(text)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errInvalidToken, err)
	}
	s := &Subject{}
	if s.Name, _ = token.Subject(); s.Name == "" {
		return nil, fmt.Errorf("%w: sub is empty", errInvalidToken)
	}
	var scope string
	if token.Has("scope") {
		if err := token.Get("scope", &scope); err != nil {
			return nil, fmt.Errorf("%w: scope is not a string", errInvalidToken)
		}
	}
	s.scopes = strings.Fields(scope)
	return s, nil
}

func (t *Tokens) parse(text string) (jwt.Token, error) {
	if err := checkHeader(text); err != nil {
		return nil, err
	}
	options := []jwt.ParseOption{
		jwt.WithKeySet(t.keys(), jws.WithRequireKid(false)), jwt.WithAcceptableSkew(t.skew),
		jwt.WithRequiredClaim(jwt.ExpirationKey), jwt.WithRequiredClaim(jwt.SubjectKey),
	}
	if t.claims.Audience != "" {
		options = append(options, jwt.WithAudience(t.claims.Audience))
	}
	if t.claims.Issuer != "" {
		options = append(options, jwt.WithIssuer(t.claims.Issuer))
	}
	return jwt.Parse([]byte(text), options...)
}

// checkHeader rejects a token whose header has no alg, or has crit. The library would use the key's
// algorithm, and ignore crit. RFC 7515, 4.1.11 forbids ignoring unsupported extensions; Pawl
// supports none.
func checkHeader(text string) error {
	message, err := jws.Parse([]byte(text), jws.WithCompact())
	if err != nil {
		return err
	}
	for _, signature := range message.Signatures() {
		header := signature.ProtectedHeaders()
		if !header.Has(jws.AlgorithmKey) {
			return errors.New("the token's header has no alg")
		}
		if header.Has(jws.CriticalKey) {
			return errors.New("the token's header has crit, and no extension is supported")
		}
	}
	return nil
}
