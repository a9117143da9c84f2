package webhooksource_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/source/webhooksource"
)

type request struct {
	auth                      uint8 // bit 0: a token; bit 1: a secret
	method, path, host, fetch string
	authorization, encoding   string
	id, timestamp, signature  string // headers as sent, if signed is notSigned
	signed                    uint8
	age                       int64 // in seconds
	body                      []byte
	declared                  int64 // Content-Length
	outcome                   uint8
}

const (
	notSigned    = iota
	wellSigned   // by the secret
	forged       // by another secret
	otherBody    // of another body
	otherMessage // of another id
	signings
)

func FuzzPost(f *testing.F) {
	captures, err := filepath.Glob("testdata/*.json")
	if err != nil || len(captures) == 0 {
		f.Fatal("no captures: ", err)
	}
	bodies := [][]byte{[]byte(payload), []byte("in/a.jpg was written\x1b[31m\n"), nil, []byte(manyRecords(3))}
	for _, name := range captures {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		bodies = append(bodies, b)
	}
	for i, b := range bodies {
		n := uint8(i)
		f.Add(n, "POST", "/events", "127.0.0.1:8081", "", "Bearer t0ken", "", "msg_1", "1763700000", "v1,bm90IHRoaXMgb25l v1a,x", n, int64(i*60), b, uint8(0), int64(-1), n)
	}
	for n := range uint8(16) { // each combination of authentication and outcome, with the token and with a signature
		f.Add(n%4, "POST", "/events", "localhost", "", "Bearer t0ken", "", "", "", "", uint8(notSigned), int64(0), bodies[0], uint8(0), int64(-1), n/4)
		f.Add(n%4, "POST", "/events", "localhost", "", "", "", "", "", "", n/4, int64(0), bodies[0], uint8(0), int64(-1), uint8(acks))
	}
	for padding := range uint8(4) {
		f.Add(uint8(2), "POST", "/events", "localhost", "", "", "", "", "", "", uint8(wellSigned), int64(0), bodies[0], padding, int64(-1), uint8(acks))
	}
	f.Add(uint8(0), "POST", "/events", "evil.example", "", "", "", "", "", "", uint8(0), int64(0), bodies[0], uint8(0), int64(-1), uint8(acks))
	f.Add(uint8(0), "POST", "/events", "localhost", "cross-site", "", "", "", "", "", uint8(0), int64(0), bodies[0], uint8(0), int64(-1), uint8(acks))
	f.Add(uint8(0), "HEAD", "/events", "[::1]", "cross-site", "t0ken", "gzip", "", "", "", uint8(1), int64(-400), bodies[0], uint8(0), int64(0), uint8(1))
	f.Add(uint8(0), "POST", "/events", "evil.example", "", "", "identity", "", "9223372036854775807", "v1,", uint8(0), int64(0), bodies[0], uint8(0), int64(1<<30), uint8(2))
	f.Fuzz(func(t *testing.T, gate uint8, method, path, host, fetch, authorization, encoding, id, timestamp, signature string,
		signed uint8, age int64, body []byte, padding uint8, declared int64, outcome uint8,
	) {
		q := &request{
			auth: gate % 4, method: method, path: path, host: host, fetch: fetch, authorization: authorization, encoding: encoding,
			id: id, timestamp: timestamp, signature: signature, signed: signed % signings, age: age % 3600,
			body: padded(body, padding), declared: declared, outcome: outcome % 4,
		}
		if square := q.age * q.age; square >= 290*290 && square <= 310*310 {
			return // too close to the tolerance of five minutes
		}
		if !q.hasLoopbackHost() && (strings.ContainsAny(host, "[]%") || strings.Count(host, ":") > 1) {
			return // not a Host header that a browser sends
		}
		q.check(t)
	})
}

func (q *request) check(t *testing.T) {
	log := &logRecorder{}
	cfg := webhooksource.Config{Logger: slog.New(log)}
	if q.auth&1 != 0 {
		cfg.Token = "Bearer t0ken"
	}
	if q.auth&2 != 0 {
		cfg.Secret = secret
	}
	src, err := webhooksource.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	sink, sent, w := &fixedSink{outcome: q.outcome}, &countedBody{}, httptest.NewRecorder()
	r := q.httpRequest(t, sent)
	src.Handler(sink).ServeHTTP(w, r)

	content := q.body
	batch, parseErr := event.Parse(content, event.Detect)
	proven, signed := q.auth == 0 || q.byToken(), q.bySignature()
	admitted := r.Method == http.MethodPost && r.URL.Path == "/events" && http.NewCrossOriginProtection().Check(r) == nil &&
		(q.auth != 0 || q.hasLoopbackHost()) && (proven || signed) && (q.encoding == "" || q.encoding == "identity") &&
		q.declared <= event.MaxPayload && len(content) <= event.MaxPayload
	if want := admitted && parseErr == nil && len(batch.Events) > 0; want != (sink.calls == 1) || sink.calls > 1 {
		t.Errorf("delivered %d times, authenticated: %v, %v, %d events", sink.calls, admitted, parseErr, len(batch.Events))
	}
	acknowledged := r.Method == http.MethodPost && w.Code == http.StatusOK
	if want := admitted && parseErr == nil && (sink.calls == 0 || q.outcome == acks); want != acknowledged {
		t.Errorf("answered %d: authenticated: %v, %v, outcome %d", w.Code, admitted, parseErr, q.outcome)
	}
	switch {
	case !proven && (q.auth&2 == 0 || r.Header.Get("webhook-signature") == "") && sent.read > 0:
		t.Errorf("%d bytes were read of an unauthenticated body", sent.read)
	case sent.read > event.MaxPayload+1:
		t.Errorf("%d bytes were read, at most %d are accepted", sent.read, event.MaxPayload)
	}
	checkResponse(t, w)
	log.check(t)
}

func (q *request) httpRequest(t *testing.T, body *countedBody) *http.Request {
	body.Reader = bytes.NewReader(q.body)
	r := &http.Request{
		Method: q.method, URL: &url.URL{Path: q.path}, Host: q.host, RemoteAddr: "192.0.2.1:4711",
		Header: http.Header{}, Body: body, ContentLength: q.declared,
	}
	id, timestamp, signature := q.id, q.timestamp, q.signature
	if q.signed != notSigned {
		id, timestamp, signature = q.sign(t)
	}
	for name, value := range map[string]string{
		"Authorization": q.authorization, "Content-Encoding": q.encoding, "Sec-Fetch-Site": q.fetch,
		"webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature,
	} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	return r.WithContext(t.Context())
}

func padded(body []byte, padding uint8) []byte {
	size := len(body)
	switch padding {
	case 1:
		size = event.MaxPayload
	case 2:
		size = event.MaxPayload + 1
	case 3:
		size = 2 * event.MaxPayload
	}
	return append(bytes.Clone(body), bytes.Repeat([]byte{' '}, max(0, size-len(body)))...)
}

// One fault, selected by signed, may make the signature invalid.
func (q *request) sign(t *testing.T) (id, timestamp, signature string) {
	key, body, at := secret, q.body, time.Now().Add(-time.Duration(q.age)*time.Second)
	id = "msg_1"
	switch q.signed {
	case forged:
		key = otherSecret
	case otherBody:
		body = append(bytes.Clone(body), ' ')
	case otherMessage:
		id = "msg_2"
	}
	hook, err := standardwebhooks.NewWebhook(key)
	if err != nil {
		t.Fatal(err)
	}
	if signature, err = hook.Sign(id, at, body); err != nil {
		t.Fatal(err)
	}
	return "msg_1", strconv.FormatInt(at.Unix(), 10), signature
}

func (q *request) byToken() bool { return q.auth&1 != 0 && q.authorization == "Bearer t0ken" }

func (q *request) bySignature() bool {
	return q.auth&2 != 0 && q.signed == wellSigned && -300 < q.age && q.age < 300
}

func (q *request) hasLoopbackHost() bool {
	host := (&url.URL{Host: q.host}).Hostname()
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

func checkResponse(t *testing.T, w *httptest.ResponseRecorder) {
	said := w.Body.String()
	if w.Body.Len() > 0 && (!json.Valid(w.Body.Bytes()) || w.Header().Get("Content-Type") != "application/json") || w.Body.Len() > 4096 {
		t.Errorf("answered %.200q", said)
	}
	if strings.Contains(said, "t0ken") || strings.Contains(said, secret[6:]) {
		t.Errorf("the response contains a secret: %q", said)
	}
	busy := w.Code == http.StatusTooManyRequests || w.Code == http.StatusServiceUnavailable
	if n, err := strconv.Atoi(w.Header().Get("Retry-After")); (err == nil && n >= 1) != busy {
		t.Errorf("answered %d, Retry-After %d, %v", w.Code, n, err)
	}
}

type countedBody struct {
	*bytes.Reader
	read int
}

func (c *countedBody) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.read += n
	return n, err
}

func (*countedBody) Close() error { return nil }

const (
	acks = iota
	nacks
	isFull
	isClosed
)

type fixedSink struct {
	outcome uint8
	calls   int
}

func (v *fixedSink) Deliver(context.Context, source.Delivery) error {
	return errors.New("a request must not wait for room")
}

func (v *fixedSink) TryDeliver(d source.Delivery) error {
	v.calls++
	switch v.outcome {
	case isFull:
		return source.ErrFull
	case isClosed:
		return source.ErrClosed
	}
	d.Done(source.Outcome{Ack: v.outcome == acks, RetryAfter: time.Hour})
	return nil
}

type logRecorder struct{ attrs []string }

func (l *logRecorder) Enabled(context.Context, slog.Level) bool { return true }
func (l *logRecorder) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logRecorder) WithGroup(string) slog.Handler            { return l }

func (l *logRecorder) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		l.attrs = append(l.attrs, fmt.Sprintf("%s=%v", a.Key, a.Value))
		return true
	})
	return nil
}

func (l *logRecorder) check(t *testing.T) {
	for _, s := range l.attrs {
		if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) || len(s) > 2048 {
			t.Errorf("logged %q", s)
		}
	}
}
