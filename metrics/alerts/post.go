package alerts

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// New returns alerts. Its errors do not contain the URL or the secret.
func New(c Config) (*Alerts, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return nil, errors.New("url: want http:// or https:// and a host, without user and password")
	}
	coded, marked := strings.CutPrefix(c.Secret, "whsec_")
	key, err := base64.StdEncoding.DecodeString(coded)
	if err != nil || !marked || len(key) < 24 {
		return nil, errors.New("secret: want whsec_ and at least 24 random bytes in base64: " +
			`make one with: echo "whsec_$(openssl rand -base64 32)"`)
	}
	for source, after := range c.SilentAfter {
		if after < time.Minute {
			return nil, fmt.Errorf("silent_after of source %s is %s: want at least a minute", source, after)
		}
	}
	signer, err := standardwebhooks.NewWebhookRaw(key)
	if err != nil {
		return nil, err
	}
	c.OldestAfter, c.Logger = cmp.Or(c.OldestAfter, 15*time.Minute), cmp.Or(c.Logger, slog.Default())
	client := &http.Client{
		Timeout:       sendTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &Alerts{Config: c, signer: signer, client: client, created: time.Now(), wake: make(chan struct{}, 1), marks: map[string]mark{}}, nil
}

func (a *Alerts) post(ctx context.Context, id string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	now := time.Now()
	signature, err := a.signer.Sign(id, now, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "pawl")
	req.Header.Set(standardwebhooks.HeaderWebhookID, id)
	req.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	req.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	res, err := a.client.Do(req)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // without the URL
		}
		return fmt.Errorf("POST to %s: %w", req.URL.Host, err)
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, 64<<10) // so that the connection can be reused
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("POST to %s: %s", req.URL.Host, res.Status)
	}
	return nil
}
