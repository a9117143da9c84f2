package s3bucket_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/s3bucket"
)

// hostile answers every request with the same bytes. It soon closes the connection, because a
// listing may never end.
type hostile struct {
	answer   []byte
	requests int
	status   int
}

func (h *hostile) Do(r *http.Request) (*http.Response, error) {
	if h.requests++; h.requests > 4 {
		return nil, io.ErrUnexpectedEOF
	}
	res, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(h.answer)), r)
	if err != nil {
		return nil, err
	}
	h.status = res.StatusCode
	return res, nil
}

// Any response must lead to a success that matches the status, or to an error of exactly one
// kind.
func FuzzAnswers(f *testing.F) {
	f.Setenv("AWS_MAX_ATTEMPTS", "1") // retries take seconds
	seeds := 0
	add := func(answer []byte) {
		f.Add(answer, uint8(seeds)) // each seed has another call
		f.Add(answer, uint8(seeds+4))
		seeds++
	}
	for _, seed := range []string{
		"HTTP/1.1 200 OK\r\nETag: \"e\"\r\nContent-Length: 5\r\nLast-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n" +
			"X-Amz-Meta-Pawl-Source: s\r\nX-Amz-Version-Id: null\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\nx", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nx",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nLast-Modified: yesterday\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\n\r\n<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>" +
			"<Contents><Key>a%2Fb+c%</Key><Size>-1</Size></Contents></ListBucketResult>",
		"HTTP/1.1 200 OK\r\n\r\n<ListBucketResult><IsTruncated>true</IsTruncated><Contents><Key>\x01</Key></Contents></ListBucketResult>",
		"HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 304 Not Modified\r\n\r\n", "HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.1:1/\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 999 \r\n\r\n", "HTTP/1.0 500", "", "\x16\x03\x01",
		"HTTP/1.1 404 Not Found\r\n\r\n<html>", "HTTP/1.1 412 no\r\n\r\n<Error><Code></Code></Error><Error>",
	} {
		add([]byte(seed))
	}
	for status, code := range map[int]string{
		404: "NoSuchKey", 409: "ConditionalRequestConflict", 412: "PreconditionFailed", 503: "SlowDown",
		400: "RequestTimeout", 403: "\x1b[31mAccessDenied", 405: "MethodNotAllowed",
	} {
		body := "<Error><Code>" + code + "</Code><Message>so it is</Message></Error>"
		add(fmt.Appendf(nil, "HTTP/1.1 %d no\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body))
	}
	s, err := s3bucket.New(f.Context(), s3bucket.Config{Endpoint: "http://127.0.0.1:1", Region: "us-east-1", PathStyle: true, AccessKey: "pawl", SecretKey: "hunter2"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, answer []byte, n uint8) {
		h := &hostile{answer: answer}
		s.SendBy(h)
		calls[int(n)%len(calls)](t, s, h)
	})
}

type call func(t *testing.T, s *s3bucket.Store, h *hostile)

var calls = []call{
	fuzzHead, fuzzGet, fuzzList, fuzzCheck, fuzzPut(bucket.Condition{}), fuzzPut(bucket.Condition{IfMatch: "e"}),
	fuzzPut(bucket.Condition{IfAbsent: true}), fuzzDelete(bucket.Condition{}), fuzzDelete(bucket.Condition{IfMatch: "e"}),
}

var (
	readKinds  = []error{bucket.ErrNotFound, bucket.ErrNoBucket, bucket.ErrDenied, bucket.ErrInvalid, bucket.ErrUnavailable}
	writeKinds = []error{bucket.ErrNoBucket, bucket.ErrDenied, bucket.ErrInvalid, bucket.ErrPrecondition, bucket.ErrConflict, bucket.ErrUnclear}
)

func fuzzHead(t *testing.T, s *s3bucket.Store, h *hostile) {
	info, err := s.Head(t.Context(), ref)
	check(t, h, err, readKinds)
	if err == nil {
		checkInfo(t, info)
	}
}

func fuzzGet(t *testing.T, s *s3bucket.Store, h *hostile) {
	info, body, err := s.Get(t.Context(), ref)
	check(t, h, err, readKinds)
	if err != nil {
		return
	}
	checkInfo(t, info)
	n, err := io.Copy(io.Discard, body)
	check(t, h, err, []error{bucket.ErrUnavailable})
	if err == nil && n != info.Size {
		t.Errorf("read %d of %d bytes without an error", n, info.Size)
	}
	body.Close()
}

func fuzzList(t *testing.T, s *s3bucket.Store, h *hostile) {
	for info, err := range s.List(t.Context(), "b", "", "") {
		check(t, h, err, readKinds)
		if err == nil && strings.HasPrefix(info.ETag, `"`) {
			t.Errorf("etag %q", info.ETag)
		}
	}
}

func fuzzCheck(t *testing.T, s *s3bucket.Store, h *hostile) {
	check(t, h, s.Check(t.Context(), "b"), readKinds)
}

func fuzzPut(c bucket.Condition) call {
	return func(t *testing.T, s *s3bucket.Store, h *hostile) {
		_, err := s.Put(t.Context(), ref, bucket.Object{Body: strings.NewReader("x"), Size: 1}, c)
		check(t, h, err, writeKinds)
		if h.requests != 1 {
			t.Errorf("one Put sent %d requests: a retry hides an answer", h.requests)
		}
	}
}

func fuzzDelete(c bucket.Condition) call {
	return func(t *testing.T, s *s3bucket.Store, h *hostile) {
		err := s.Delete(t.Context(), ref, c)
		if err == nil && c.IfMatch == "" && bytes.Contains(h.answer, []byte("NoSuch")) {
			h.status = 0 // AWS reports success, some stores do not
		}
		check(t, h, err, writeKinds)
		if h.requests != 1 {
			t.Errorf("one Delete sent %d requests", h.requests)
		}
	}
}

func checkInfo(t *testing.T, i bucket.Info) {
	if i.Key != ref.Key || i.VersionID == "null" || strings.HasPrefix(i.ETag, `"`) || i.Size < 0 {
		t.Errorf("%+v", i)
	}
	for name := range i.Metadata {
		if name != strings.ToLower(name) {
			t.Errorf("metadata %q is not in lower case", name)
		}
	}
}

func check(t *testing.T, h *hostile, err error, kinds []error) {
	t.Helper()
	if err == nil {
		if h.status != 0 && (h.status < 200 || h.status > 299) {
			t.Errorf("no error with status %d", h.status)
		}
		return
	}
	of := slices.DeleteFunc(slices.Clone(kinds), func(kind error) bool { return !errors.Is(err, kind) })
	if len(of) != 1 {
		t.Errorf("%v matches the kinds %v, want exactly one of %v", err, of, kinds)
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error contains the secret: %v", err)
	}
}
