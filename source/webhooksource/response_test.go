package webhooksource_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/source/sourcetest"
	"github.com/pawlhq/pawl/source/webhooksource"
)

var payload = sourcetest.Payload("in/a.jpg")

func TestMethodsAndPaths(t *testing.T) {
	e := serve(t, webhooksource.Config{Token: "Bearer t0ken"}, ackAll{})
	tests := []struct {
		method, url string
		want        int
	}{
		{http.MethodHead, e.url, http.StatusOK},
		{http.MethodGet, e.url, http.StatusMethodNotAllowed},
		{http.MethodPut, e.url, http.StatusMethodNotAllowed},
		{http.MethodPost, e.url + "/", http.StatusNotFound},
		{http.MethodHead, strings.TrimSuffix(e.url, "/in"), http.StatusNotFound},
		{http.MethodPost, e.url, http.StatusUnauthorized},
	}
	for _, tt := range tests {
		got := send(t, tt.method, tt.url, nil)
		if got.status != tt.want {
			t.Errorf("%s %s: %d, want %d", tt.method, tt.url, got.status, tt.want)
		}
		if allow := got.header.Get("Allow"); (allow == "HEAD, POST") != (tt.want == http.StatusMethodNotAllowed) {
			t.Errorf("%s %s: Allow is %q", tt.method, tt.url, allow)
		}
	}
}

func TestOutcomes(t *testing.T) {
	verdicts := source.Verdicts{Raised: 1, Duplicate: 2, Stale: 3, Unmatched: 4}
	tests := []struct {
		name    string
		outcome source.Outcome
		status  int
		retry   string
		body    map[string]any
	}{
		{
			"acknowledged", source.Outcome{Ack: true, Verdicts: verdicts}, http.StatusOK, "",
			map[string]any{"raised": 1.0, "duplicate": 2.0, "stale": 3.0, "unmatched": 4.0, "ignored": 0.0},
		},
		{
			"not acknowledged", source.Outcome{RetryAfter: 2100 * time.Millisecond, Err: errors.New("ledger at /var/lib/pawl")},
			http.StatusServiceUnavailable, "3", map[string]any{"error": "not acknowledged: post it again"},
		},
		{
			"at once", source.Outcome{}, http.StatusServiceUnavailable, "1",
			map[string]any{"error": "not acknowledged: post it again"},
		},
	}
	sink := sourcetest.NewSink(1)
	e := serve(t, webhooksource.Config{TrustSequencer: true}, sink)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := posting(t, e.url, payload)
			d := sink.Next(t)
			if !d.TrustSequencer || len(d.Events) != 1 {
				t.Errorf("delivered %+v", d)
			}
			d.Done(tt.outcome)
			r := sourcetest.Wait(t, got, "the answer")
			if r.status != tt.status || r.header.Get("Retry-After") != tt.retry {
				t.Errorf("answered %d, Retry-After %q, want %d, %q", r.status, r.header.Get("Retry-After"), tt.status, tt.retry)
			}
			if diff := cmp.Diff(tt.body, r.json(t)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFullAndClosed(t *testing.T) {
	sink := sourcetest.NewSink(0)
	e := serve(t, webhooksource.Config{}, sink)
	if r := post(t, e.url, payload); r.status != http.StatusTooManyRequests || r.header.Get("Retry-After") != "1" {
		t.Errorf("full: %+v", r)
	}
	sink.Close()
	if r := post(t, e.url, payload); r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") != "5" {
		t.Errorf("closed: %+v", r)
	}
}

func TestBadInputIsNotAcknowledged(t *testing.T) {
	tests := []struct {
		name, payload string
		cfg           webhooksource.Config
		status        int
		reason        string
	}{
		{"empty", "", webhooksource.Config{}, http.StatusBadRequest, "empty"},
		{"truncated", payload[:len(payload)-20], webhooksource.Config{}, http.StatusBadRequest, "cut off"},
		{"no JSON", "in/a.jpg was written", webhooksource.Config{}, http.StatusBadRequest, "JSON"},
		{"unknown dialect", `{"hello":"world"}`, webhooksource.Config{}, http.StatusBadRequest, "unknown notification dialect"},
		{"another dialect", payload, webhooksource.Config{Dialect: event.R2}, http.StatusBadRequest, "r2"},
		{
			"sequencer that is not hexadecimal", strings.Replace(payload, "0055AED6", "0055XYZ6", 1),
			webhooksource.Config{}, http.StatusBadRequest, "is not hexadecimal",
		},
		{"too many records", manyRecords(event.MaxRecords + 1), webhooksource.Config{}, http.StatusRequestEntityTooLarge, "records"},
		{"too large", strings.Repeat(" ", event.MaxPayload) + "{}", webhooksource.Config{}, http.StatusRequestEntityTooLarge, "1048576 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := serve(t, tt.cfg, ackAll{})
			r := post(t, e.url, tt.payload)
			reason, _ := r.json(t)["error"].(string)
			if r.status != tt.status || !strings.Contains(reason, tt.reason) {
				t.Errorf("answered %d %q, want %d and an error with %q", r.status, reason, tt.status, tt.reason)
			}
		})
	}
}

func manyRecords(n int) string {
	const record = `{"eventVersion":"2.1","eventSource":"aws:s3","eventName":"ObjectTagging:Put"}`
	return `{"Records":[` + strings.Repeat(record+",", n-1) + record + `]}`
}

func TestBodyLimitWithoutLength(t *testing.T) {
	e := serve(t, webhooksource.Config{}, ackAll{})
	body := struct{ io.Reader }{strings.NewReader(strings.Repeat(" ", event.MaxPayload+1))}
	if r := send(t, http.MethodPost, e.url, body); r.status != http.StatusRequestEntityTooLarge {
		t.Errorf("answered %d", r.status)
	}
}

func TestCompressedIsRejected(t *testing.T) {
	e := serve(t, webhooksource.Config{}, ackAll{})
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, payload); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	r := send(t, http.MethodPost, e.url, &b, "Content-Encoding", "gzip")
	if r.status != http.StatusUnsupportedMediaType || r.header.Get("Accept-Encoding") != "identity" {
		t.Errorf("answered %+v", r)
	}
}

func TestCrossOriginRequestsAreRejected(t *testing.T) {
	e := serve(t, webhooksource.Config{}, ackAll{})
	if r := post(t, e.url, payload, "Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"); r.status != http.StatusForbidden {
		t.Errorf("answered %d", r.status)
	}
}

func TestCaptures(t *testing.T) {
	tests := []struct {
		file    string
		kind    event.Kind // zero: the sink is not called
		ignored float64
	}{
		{"minio-created-put", event.Created, 0},
		{"minio-removed-delete", event.Removed, 0},
		{"minio-removed-noop", 0, 1},
		{"versitygw-created-put", event.Created, 0},
		{"versitygw-removed-delete", event.Removed, 0},
		{"versitygw-test-event", 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join("testdata", tt.file+".json"))
			if err != nil {
				t.Fatal(err)
			}
			sink := sourcetest.NewSink(1)
			e := serve(t, webhooksource.Config{}, sink)
			got := posting(t, e.url, string(b))
			if tt.kind != 0 {
				d := sink.Next(t)
				want := event.Object{Bucket: "photos", Key: "a b+c/é.txt"}
				if len(d.Events) != 1 || d.Events[0].Object != want || d.Events[0].Kind != tt.kind || d.TrustSequencer {
					t.Errorf("delivered %+v", d)
				}
				d.Done(source.Outcome{Ack: true})
			}
			r := sourcetest.Wait(t, got, "the answer")
			if r.status != http.StatusOK || r.json(t)["ignored"] != tt.ignored {
				t.Errorf("answered %d %s, want %v ignored", r.status, r.body, tt.ignored)
			}
		})
	}
}
