package httpaction

import (
	"bufio"
	"bytes"
	"io"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pawlhq/pawl/worker"
)

// rawTransport parses fixed bytes as the response. It has no goroutines, so that the fuzzer does
// not find scheduling differences.
type rawTransport struct {
	answer []byte
	header int64
	sent   *counted
	status int // 0: not parsed
}

type counted struct {
	*bytes.Reader
	read, remaining int64
}

func (c *counted) Read(p []byte) (int, error) {
	if c.remaining == 0 {
		return 0, io.EOF
	}
	n, err := c.Reader.Read(p[:min(int64(len(p)), c.remaining)])
	c.read, c.remaining = c.read+int64(n), c.remaining-int64(n)
	return n, err
}

func (s *rawTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	s.sent = &counted{Reader: bytes.NewReader(s.answer), remaining: s.header}
	res, err := http.ReadResponse(bufio.NewReader(s.sent), r)
	s.sent.remaining = math.MaxInt64
	if err == nil {
		s.status = res.StatusCode
	}
	return res, err
}

// maxRead is in addition to headers. net/http reads ahead, and tolerates overhead in chunked
// bodies (2 lines, 16 bytes each, and 16 KiB in total).
const maxRead = 24*maxBody + 16<<10 + 4<<10

func FuzzAnswer(f *testing.F) {
	for _, status := range []string{"200 OK", "204 No Content", "299 x", "301 Moved", "307 x", "400 no", "408 x", "425 x", "429 x", "500 x", "503 x", "999 x", "100 Continue", "000 x", "099 x"} {
		f.Add([]byte("HTTP/1.1 " + status + "\r\nRetry-After: 120\r\nLocation: https://u:p@h/x?token=hush#f\r\nContent-Length: 9\r\n\r\n\x1b[31mno\xff\n"))
	}
	for _, after := range []string{"Sun, 06 Nov 2094 08:49:37 GMT", "-1", "18446744073709551616", "3599.5", "Sun, 06 Nov 1994 08:49:37 GMT", "٣", "0", "+1"} {
		f.Add([]byte("HTTP/1.1 503 no\r\nRetry-After: " + after + "\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"))
	}
	f.Add([]byte("HTTP/1.1 302 x\r\nLocation: http://\x7f/%zz\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 302 x\r\nLocation: http://h/" + strings.Repeat("x", 60_000) + "\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 " + strings.Repeat("x", 60_000)))
	f.Add([]byte("HTTP/1.1 500 x\r\n\r\n" + strings.Repeat("word ", 40_000)))
	f.Add([]byte("HTTP/1.1 500 " + strings.Repeat("x", 64<<10) + "\r\n\r\n" + strings.Repeat("word ", 20_000)))
	f.Add([]byte("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 70_000) + "\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 500 x\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1;xxxxxxxxxxxxxxx\r\nx\r\n", 5_000)))
	f.Add([]byte("\x16\x03\x01"))
	f.Fuzz(fuzzAnswer)
}

func fuzzAnswer(t *testing.T, answer []byte) {
	h, err := newHandler(Config{URL: "http://service.example/load?token=our-own-token", Secret: "our own secret"})
	if err != nil {
		t.Fatal(err)
	}
	s := &rawTransport{answer: answer, header: h.client.Transport.(*http.Transport).MaxResponseHeaderBytes}
	h.client.Transport = s
	err = h.Handle(t.Context(), task())
	if s.sent.read > s.header+maxRead {
		t.Errorf("%d bytes of the answer were read", s.sent.read)
	}
	checkRetryAfter(t, answer[:min(len(answer), 4<<10)])
	switch {
	case (err == nil) != (200 <= s.status && s.status < 300):
		t.Errorf("status %d: result %v", s.status, err)
	case err == nil:
		return
	case strings.Contains(err.Error(), "failed to parse Location"): // by net/http
	case worker.IsPermanent(err) != (s.status >= 100 && s.status < 500 && s.status != 408 && s.status != 425 && s.status != 429):
		t.Errorf("%d is permanent: %v: %v", s.status, worker.IsPermanent(err), err)
	}
	checkText(t, err.Error())
}

var redirectedTo = regexp.MustCompile(`redirected to (.*), which is not followed`)

func checkText(t *testing.T, s string) {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) || len(s) > 4096 {
		t.Errorf("%q is not printable or too long", s)
	}
	if m := redirectedTo.FindStringSubmatch(s); strings.Contains(s, "our-own-token") || strings.Contains(s, "our own secret") || m != nil && strings.Contains(m[1], "?") {
		t.Errorf("%q contains a secret", s)
	}
}

func checkRetryAfter(t *testing.T, header []byte) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for line := range strings.Lines(string(header)) {
		_, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		d := retryAfter(value, now)
		if n, err := strconv.Atoi(value); err == nil && value[0] != '+' && n >= 0 && d != min(time.Duration(min(n, 3600))*time.Second, time.Hour) {
			t.Errorf("%q is %s", value, d)
		}
		if d < 0 || d > time.Hour || d > 0 && value == "" {
			t.Errorf("%q is %s", value, d)
		}
	}
}
