package filesapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/lestrrat-go/httprc/v3"
	"github.com/lestrrat-go/httprc/v3/errsink"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"
)

const (
	keyRefreshInterval = 5 * time.Minute
	// minKeyRefreshInterval limits fetches because of unknown keys.
	minKeyRefreshInterval = 30 * time.Second
	maxKeySetSize         = 1 << 20
)

// NewTokensAt returns a verifier with the key set at a URL: https, or http on a loopback address.
// It fetches the set immediately, with up to three attempts, and every five minutes until ctx ends.
// An unknown key triggers a fetch, at most every 30 seconds. If a fetch fails, the previous set
// remains in use. Only RSA (RS256) and P-256 (ES256) keys for signatures are used. A nil transport
// means http.DefaultTransport.
func NewTokensAt(ctx context.Context, at string, claims Claims, transport http.RoundTripper, log *slog.Logger) (*Tokens, error) {
	if err := checkKeysURL(at); err != nil {
		return nil, err
	}
	client := &http.Client{
		Transport: transport, Timeout: 10 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // a redirect may lead to any host
	}
	keys, err := httprc.NewResource(at, httprc.TransformFunc[jwk.Set](readKeys),
		httprc.WithHTTPClient(client), httprc.WithConstantInterval(keyRefreshInterval), httprc.WithMinInterval(keyRefreshInterval))
	if err != nil {
		return nil, err
	}
	if _, err := backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, keys.Sync(ctx) },
		backoff.WithBackOff(backoff.NewConstantBackOff(time.Second)), backoff.WithMaxTries(3)); err != nil {
		return nil, fmt.Errorf("filesapi: fetch the key set: %w", err)
	}
	failed := errsink.NewFunc(func(ctx context.Context, err error) {
		log.WarnContext(ctx, "cannot fetch the key set of tokens; keeping the previous one", "error", err)
	})
	control, err := httprc.NewClient(httprc.WithWorkers(1), httprc.WithErrorSink(failed)).Start(ctx)
	if err != nil {
		return nil, err
	}
	t := &Tokens{keys: keys.Resource, claims: claims, skew: time.Minute}
	t.refresh = newKeyRefresher(keys, func(ctx context.Context, err error) { failed.Put(ctx, err) })
	return t, control.Add(ctx, keys)
}

func checkKeysURL(at string) error {
	u, err := url.Parse(at)
	if err != nil {
		return fmt.Errorf("filesapi: invalid URL of the key set: %w", err)
	}
	ip, _ := netip.ParseAddr(u.Hostname())
	if u.Scheme == "https" && u.Host != "" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip.IsLoopback()) {
		return nil
	}
	return fmt.Errorf("filesapi: key set %s: the URL must use https, or http on this machine", u.Redacted())
}

func readKeys(_ context.Context, resp *http.Response) (jwk.Set, error) {
	text, err := io.ReadAll(http.MaxBytesReader(nil, resp.Body, maxKeySetSize))
	if err != nil {
		return nil, err
	}
	all, err := jwk.Parse(text, jwk.WithIgnoreParseError(true)) // ignores keys of unknown types
	if err != nil {
		return nil, err
	}
	set := jwk.NewSet()
	for i := range all.Len() {
		key, _ := all.Key(i)
		if key, ok := verificationKey(key); ok {
			if err := set.AddKey(key); err != nil {
				return nil, err
			}
		}
	}
	if set.Len() == 0 {
		return nil, errors.New("the key set has no key for RS256 or ES256")
	}
	return set, nil
}

// verificationKey rejects shared secrets, because everyone who can read the URL could sign with
// them.
func verificationKey(key jwk.Key) (jwk.Key, bool) {
	alg := jwa.RS256()
	switch key.KeyType() {
	case jwa.RSA():
	case jwa.EC():
		var curve jwa.EllipticCurveAlgorithm
		if err := key.Get(jwk.ECDSACrvKey, &curve); err != nil || curve != jwa.P256() {
			return nil, false
		}
		alg = jwa.ES256()
	default:
		return nil, false
	}
	named, ok := key.Algorithm()
	if use, _ := key.KeyUsage(); ok && named.String() != alg.String() || use != "" && use != jwk.ForSignature.String() {
		return nil, false
	}
	public, err := jwk.PublicKeyOf(key)
	if err != nil || public.Set(jwk.AlgorithmKey, alg) != nil {
		return nil, false
	}
	return public, true
}

func newKeyRefresher(keys *httprc.ResourceBase[jwk.Set], failed func(context.Context, error)) func(context.Context, string) bool {
	turn := make(chan struct{}, 1)
	var last time.Time
	return func(ctx context.Context, token string) bool {
		message, err := jws.Parse([]byte(token))
		if err != nil || len(message.Signatures()) != 1 {
			return false
		}
		kid, ok := message.Signatures()[0].ProtectedHeaders().KeyID()
		known := func() bool {
			_, found := keys.Resource().LookupKeyID(kid)
			return found
		}
		if !ok || known() {
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case turn <- struct{}{}:
		}
		defer func() { <-turn }()
		if time.Since(last) < minKeyRefreshInterval { // another request has fetched the set, or the last fetch was too recent
			return known()
		}
		last = time.Now()
		if err := keys.Sync(context.WithoutCancel(ctx)); err != nil {
			failed(ctx, err)
		}
		return known()
	}
}
