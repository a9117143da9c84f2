package httpaction

import (
	"bufio"
	"bytes"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pawlhq/pawl/worker"
)

// stranger answers a request with bytes.
type stranger struct {
	answer []byte
	sent   *counted
	status int // as far as it can be read
}

// counted counts what is read of an answer.
type counted struct {
	*bytes.Reader
	read int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.read += n
	return n, err
}

func (s *stranger) RoundTrip(r *http.Request) (*http.Response, error) {
	s.sent = &counted{Reader: bytes.NewReader(s.answer)}
	res, err := http.ReadResponse(bufio.NewReader(s.sent), r)
	if err == nil {
		s.status = res.StatusCode
	}
	return res, err
}

// FuzzAnswer checks that whatever a service answers, the attempt ends as the
// package's documentation says, with an error fit for a log.
func FuzzAnswer(f *testing.F) {
	for _, status := range []string{"200 OK", "204 No Content", "299 x", "301 Moved", "307 x", "400 no", "408 x", "425 x", "429 x", "500 x", "503 x", "999 x", "100 Continue", "000 x", "099 x"} {
		f.Add([]byte("HTTP/1.1 " + status + "\r\nRetry-After: 120\r\nLocation: https://u:p@h/x?token=hush#f\r\nContent-Length: 9\r\n\r\n\x1b[31mno\xff\n"))
	}
	for _, after := range []string{"Sun, 06 Nov 2094 08:49:37 GMT", "-1", "18446744073709551616", "3599.5", "Sun, 06 Nov 1994 08:49:37 GMT", "٣", "0"} {
		f.Add([]byte("HTTP/1.1 503 no\r\nRetry-After: " + after + "\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"))
	}
	f.Add([]byte("HTTP/1.1 302 x\r\nLocation: http://\x7f/%zz\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 302 x\r\nLocation: http://h/" + strings.Repeat("x", 60_000) + "\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 " + strings.Repeat("x", 60_000)))
	f.Add([]byte("HTTP/1.1 500 x\r\n\r\n" + strings.Repeat("word ", 40_000)))
	f.Add([]byte("\x16\x03\x01"))
	f.Fuzz(fuzzAnswer)
}

func fuzzAnswer(t *testing.T, answer []byte) {
	h, err := newHandler(Config{URL: "http://service.example/load?token=our-own-token", Secret: "our own secret"})
	if err != nil {
		t.Fatal(err)
	}
	s := &stranger{answer: answer}
	h.client.Transport = s
	err = h.Handle(t.Context(), task())
	if s.sent.read > maxBody+64<<10 {
		t.Errorf("%d bytes of the answer were read", s.sent.read)
	}
	checkRetryAfter(t, answer)
	switch {
	case (err == nil) != (200 <= s.status && s.status < 300):
		t.Errorf("%d ends as %v", s.status, err)
	case err == nil:
		return
	case strings.Contains(err.Error(), "failed to parse Location"): // to package net/http no answer
	case worker.IsPermanent(err) != (s.status >= 100 && s.status < 500 && s.status != 408 && s.status != 425 && s.status != 429):
		t.Errorf("%d is permanent: %v: %v", s.status, worker.IsPermanent(err), err)
	}
	checkText(t, err.Error())
}

// redirectedTo is how an error names the place of a redirect.
var redirectedTo = regexp.MustCompile(`redirected to (.*), which is not followed`)

// checkText checks that an error is a line fit for a terminal, without what the
// URLs in it hide in their queries.
func checkText(t *testing.T, s string) {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) || len(s) > 4096 {
		t.Errorf("%q is not fit for a log", s)
	}
	if m := redirectedTo.FindStringSubmatch(s); strings.Contains(s, "our-own-token") || strings.Contains(s, "our own secret") || m != nil && strings.Contains(m[1], "?") {
		t.Errorf("%q has what is secret", s)
	}
}

// checkRetryAfter checks that the wait that is asked for is within its bounds.
func checkRetryAfter(t *testing.T, header []byte) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for line := range strings.Lines(string(header)) {
		_, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		d := retryAfter(value, now)
		if n, err := strconv.Atoi(value); err == nil && n >= 0 && d != min(time.Duration(min(n, 3600))*time.Second, time.Hour) {
			t.Errorf("%q is %s", value, d)
		}
		if d < 0 || d > time.Hour || d > 0 && value == "" {
			t.Errorf("%q is %s", value, d)
		}
	}
}
