package webhooksource_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/pawlhq/pawl/source/sourcetest"
	"github.com/pawlhq/pawl/source/webhooksource"
)

const (
	secret      = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	otherSecret = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
)

func TestToken(t *testing.T) {
	tests := []struct {
		token, header string
		want          int
	}{
		{"Bearer t0ken", "Bearer t0ken", 200},
		{"Bearer t0ken", "Bearer t0ke", 401},
		{"Bearer t0ken", "Bearer t0kenn", 401},
		{"Bearer t0ken", "bearer t0ken", 401},
		{"Bearer t0ken", "t0ken", 401},
		{"Bearer t0ken", "", 401},
		{"t0ken", "Bearer t0ken", 200}, // MinIO's header for one word
		{"t0ken", "t0ken", 200},
		{"t0ken", "Basic t0ken", 401},
		{"Splunk  t0ken", "Splunk  t0ken", 200}, // MinIO's header for two words
		{"", "Bearer whatever", 200},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%q by %q", tt.token, tt.header), func(t *testing.T) {
			e := serve(t, webhooksource.Config{Token: tt.token}, ackAll{})
			r := post(t, e.url, payload, "Authorization", tt.header)
			if r.status != tt.want {
				t.Errorf("answered %d, want %d", r.status, tt.want)
			}
			if r.status == http.StatusUnauthorized && r.json(t)["error"] != "unauthorized" {
				t.Errorf("the response is too detailed: %s", r.body)
			}
		})
	}
}

func sign(t *testing.T, secret, body string, at time.Time) []string {
	t.Helper()
	hook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := hook.Sign("msg_1", at, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return []string{
		standardwebhooks.HeaderWebhookID, "msg_1",
		standardwebhooks.HeaderWebhookTimestamp, fmt.Sprint(at.Unix()),
		standardwebhooks.HeaderWebhookSignature, signature,
	}
}

func TestSignature(t *testing.T) {
	now := time.Now()
	rotated := sign(t, secret, payload, now)
	rotated[5] = "v1,bm90IHRoaXMgb25l " + rotated[5]
	tests := []struct {
		name    string
		token   string
		headers []string
		want    int
	}{
		{"valid", "", sign(t, secret, payload, now), 200},
		{"one of two", "", rotated, 200},
		{"none", "", nil, 401},
		{"of another secret", "", sign(t, otherSecret, payload, now), 401},
		{"of another body", "", sign(t, secret, payload+" ", now), 401},
		{"too old", "", sign(t, secret, payload, now.Add(-6*time.Minute)), 401},
		{"of the future", "", sign(t, secret, payload, now.Add(6*time.Minute)), 401},
		{"valid, with a token configured", "t0ken", sign(t, secret, payload, now), 200},
		{"none, with a valid token", "t0ken", []string{"Authorization", "Bearer t0ken"}, 200},
		{"wrong token", "t0ken", []string{"Authorization", "Bearer t0k3n"}, 401},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := serve(t, webhooksource.Config{Secret: secret, Token: tt.token}, ackAll{})
			if r := post(t, e.url, payload, tt.headers...); r.status != tt.want {
				t.Errorf("answered %d, want %d", r.status, tt.want)
			}
		})
	}
}

func TestLogHasNoSecretsAndNoRepeats(t *testing.T) {
	var log bytes.Buffer
	cfg := webhooksource.Config{Token: "Bearer t0ken", Secret: secret, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	e := serve(t, cfg, ackAll{})
	for range 5 {
		post(t, e.url, payload, "Authorization", "Bearer guess1")
		post(t, e.url, payload, sign(t, otherSecret, payload, time.Now())...)
		post(t, e.url, `{"Records":"by a stranger"}`)
		post(t, e.url, `{"Records":"by a friend"}`, "Authorization", "Bearer t0ken")
		post(t, e.url, payload, "Authorization", "Bearer t0ken")
	}
	e.cancel()
	sourcetest.Wait(t, e.ended, "the end of Run")
	for _, private := range []string{"t0ken", "MfKQ9r8", "guess1", "v1,", "by a stranger", "in/a.jpg"} {
		if strings.Contains(log.String(), private) {
			t.Errorf("the log has %q", private)
		}
	}
	for _, once := range []string{"token or signature is wrong", "cannot be read", "by a friend"} {
		if n := strings.Count(log.String(), once); n != 1 {
			t.Errorf("the log says %d times that %q, want once", n, once)
		}
	}
	if t.Failed() {
		t.Log(log.String())
	}
}
