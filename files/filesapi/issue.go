package filesapi

import (
	"fmt"
	"strings"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwt"
)

// TokenSpec describes a token.
type TokenSpec struct {
	Subject  string
	Audience string
	Issuer   string
	Scopes   []string // read:ENTITY, write:ENTITY, read:* or write:*
	Life     time.Duration
}

// SignToken returns a token that is valid from now, signed with a shared secret (HS256).
func SignToken(secret []byte, g TokenSpec) (string, error) {
	keys, err := Secret(secret)
	if err != nil {
		return "", err
	}
	if g.Subject == "" {
		return "", fmt.Errorf("filesapi: a token needs a subject")
	}
	for _, scope := range g.Scopes {
		if do, entity, _ := strings.Cut(scope, ":"); do != "read" && do != "write" || entity != "*" && !entityPattern.MatchString(entity) {
			return "", fmt.Errorf("filesapi: scope %q: want read:ENTITY, write:ENTITY, read:* or write:*", scope)
		}
	}
	b := jwt.NewBuilder().Subject(g.Subject).Expiration(time.Now().Add(g.Life)).Claim("scope", strings.Join(g.Scopes, " "))
	if g.Audience != "" {
		b.Audience([]string{g.Audience})
	}
	if g.Issuer != "" {
		b.Issuer(g.Issuer)
	}
	token, err := b.Build()
	if err != nil {
		return "", err
	}
	key, _ := keys.Key(0)
	signed, err := jwt.Sign(token, jwt.WithKey(jwa.HS256(), key))
	return string(signed), err
}
