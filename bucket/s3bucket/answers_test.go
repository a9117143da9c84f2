package s3bucket_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/s3bucket"
	"github.com/pawlhq/pawl/event"
)

func serve(t *testing.T, handle http.HandlerFunc) *s3bucket.Store {
	t.Helper()
	srv := httptest.NewServer(handle)
	t.Cleanup(srv.Close)
	s, err := s3bucket.New(t.Context(), s3bucket.Config{
		Endpoint: srv.URL, Region: "us-east-1", PathStyle: true, AccessKey: "pawl", SecretKey: "hunter2",
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var ref = event.Object{Bucket: "b", Key: "k"}

func refuse(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	if code != "" {
		fmt.Fprintf(w, "<Error><Code>%s</Code><Message>so it is</Message></Error>", code)
	}
}

func TestAnswers(t *testing.T) {
	t.Setenv("AWS_MAX_ATTEMPTS", "1") // retries take seconds
	for _, tc := range []struct {
		status              int
		code                string
		get, put, putIf, rm error // rm: an unconditional Delete
	}{
		{404, "NoSuchKey", bucket.ErrNotFound, bucket.ErrUnclear, bucket.ErrPrecondition, nil},
		{404, "NoSuchBucket", bucket.ErrNoBucket, bucket.ErrNoBucket, bucket.ErrNoBucket, bucket.ErrNoBucket},
		// may come from a proxy
		{404, "", bucket.ErrUnavailable, bucket.ErrUnclear, bucket.ErrUnclear, bucket.ErrUnclear},
		{412, "PreconditionFailed", bucket.ErrUnavailable, bucket.ErrPrecondition, bucket.ErrPrecondition, bucket.ErrPrecondition},
		{409, "ConditionalRequestConflict", bucket.ErrUnavailable, bucket.ErrConflict, bucket.ErrConflict, bucket.ErrConflict},
		{409, "OperationAborted", bucket.ErrUnavailable, bucket.ErrConflict, bucket.ErrConflict, bucket.ErrConflict},
		{409, "ObjectParentIsFile", bucket.ErrInvalid, bucket.ErrInvalid, bucket.ErrInvalid, bucket.ErrInvalid},
		{429, "TooManyRequests", bucket.ErrUnavailable, bucket.ErrConflict, bucket.ErrConflict, bucket.ErrConflict},
		{403, "AccessDenied", bucket.ErrDenied, bucket.ErrDenied, bucket.ErrDenied, bucket.ErrDenied},
		{400, "ExpiredToken", bucket.ErrDenied, bucket.ErrDenied, bucket.ErrDenied, bucket.ErrDenied},
		{400, "AuthorizationHeaderMalformed", bucket.ErrDenied, bucket.ErrDenied, bucket.ErrDenied, bucket.ErrDenied},
		{301, "PermanentRedirect", bucket.ErrDenied, bucket.ErrDenied, bucket.ErrDenied, bucket.ErrDenied},
		{400, "InvalidArgument", bucket.ErrInvalid, bucket.ErrInvalid, bucket.ErrInvalid, bucket.ErrInvalid},
		{400, "XMinioInvalidObjectName", bucket.ErrInvalid, bucket.ErrInvalid, bucket.ErrInvalid, bucket.ErrInvalid},
		{400, "KeyTooLongError", bucket.ErrInvalid, bucket.ErrInvalid, bucket.ErrInvalid, bucket.ErrInvalid},
		{414, "", bucket.ErrInvalid, bucket.ErrInvalid, bucket.ErrInvalid, bucket.ErrInvalid},
		{501, "NotImplemented", bucket.ErrInvalid, bucket.ErrInvalid, bucket.ErrInvalid, bucket.ErrInvalid},
		{400, "RequestTimeout", bucket.ErrUnavailable, bucket.ErrUnclear, bucket.ErrUnclear, bucket.ErrUnclear},
		{400, "IncompleteBody", bucket.ErrUnavailable, bucket.ErrUnclear, bucket.ErrUnclear, bucket.ErrUnclear},
		{400, "BadDigest", bucket.ErrUnavailable, bucket.ErrUnclear, bucket.ErrUnclear, bucket.ErrUnclear},
		{400, "ThrottlingException", bucket.ErrUnavailable, bucket.ErrUnclear, bucket.ErrUnclear, bucket.ErrUnclear},
		{400, "KMS.ThrottlingException", bucket.ErrUnavailable, bucket.ErrUnclear, bucket.ErrUnclear, bucket.ErrUnclear},
		{403, "RequestTimeTooSkewed", bucket.ErrUnavailable, bucket.ErrUnclear, bucket.ErrUnclear, bucket.ErrUnclear},
		{500, "InternalError", bucket.ErrUnavailable, bucket.ErrUnclear, bucket.ErrUnclear, bucket.ErrUnclear},
		{503, "SlowDown", bucket.ErrUnavailable, bucket.ErrUnclear, bucket.ErrUnclear, bucket.ErrUnclear},
		{504, "", bucket.ErrUnavailable, bucket.ErrUnclear, bucket.ErrUnclear, bucket.ErrUnclear},
	} {
		t.Run(fmt.Sprint(tc.status, tc.code), func(t *testing.T) {
			var writes atomic.Int32
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodGet && r.Method != http.MethodHead {
					writes.Add(1)
				}
				refuse(w, tc.status, tc.code)
			})
			ctx := t.Context()
			_, err := s.Head(ctx, ref)
			want(t, "Head", err, tc.get)
			_, _, err = s.Get(ctx, ref)
			want(t, "Get", err, tc.get)
			_, err = s.Put(ctx, ref, bucket.Object{Body: strings.NewReader("x"), Size: 1}, bucket.Condition{})
			want(t, "Put", err, tc.put)
			_, err = s.Put(ctx, ref, bucket.Object{Body: strings.NewReader("x"), Size: 1}, bucket.Condition{IfMatch: "e"})
			want(t, "Put with IfMatch", err, tc.putIf)
			want(t, "Delete", s.Delete(ctx, ref, bucket.Condition{}), tc.rm)
			if n := writes.Load(); n != 3 {
				t.Errorf("three writes sent %d requests: a retry hides an answer", n)
			}
		})
	}
}

func want(t *testing.T, what string, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) || (kind == nil && err != nil) {
		t.Errorf("%s = %v, want %v", what, err, kind)
	}
	if err != nil && strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error of %s contains the secret: %v", what, err)
	}
}

func TestReadsAreRetried(t *testing.T) {
	var requests atomic.Int32
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) == 1 {
			refuse(w, 503, "SlowDown")
			return
		}
		fmt.Fprint(w, "x")
	})
	if _, err := s.Head(t.Context(), ref); err != nil || requests.Load() != 2 {
		t.Errorf("Head = %v after %d requests, want success after 2", err, requests.Load())
	}
}

func TestLostAnswer(t *testing.T) {
	var requests atomic.Int32
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler)
	})
	_, err := s.Put(t.Context(), ref, bucket.Object{Body: strings.NewReader("x"), Size: 1}, bucket.Condition{IfAbsent: true})
	want(t, "Put", err, bucket.ErrUnclear)
	want(t, "Delete", s.Delete(t.Context(), ref, bucket.Condition{}), bucket.ErrUnclear)
	if n := requests.Load(); n != 2 {
		t.Errorf("two writes sent %d requests", n)
	}
}

func TestLostBucket(t *testing.T) {
	var code string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			refuse(w, 404, "")
			return
		}
		if code == "" {
			w.Header().Set("ETag", `"e"`)
			fmt.Fprint(w, "written in between")
			return
		}
		refuse(w, 404, code)
	})
	for c, kind := range map[string]error{"NoSuchBucket": bucket.ErrNoBucket, "NoSuchKey": bucket.ErrNotFound, "": nil} {
		code = c
		info, err := s.Head(t.Context(), ref)
		want(t, "Head, "+c, err, kind)
		if kind == nil && info.ETag != "e" {
			t.Errorf("Head of an object that was created in between = %+v", info)
		}
	}
}

func TestShortBody(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
		fmt.Fprint(w, "hello")
	})
	_, body, err := s.Get(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	got, err := io.ReadAll(body)
	if string(got) != "hello" || !errors.Is(err, io.ErrUnexpectedEOF) || !errors.Is(err, bucket.ErrUnavailable) {
		t.Errorf("read %q, %v, want io.ErrUnexpectedEOF and ErrUnavailable", got, err)
	}
}

func TestUnknownLength(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush()
		fmt.Fprint(w, "hello")
	})
	_, _, err := s.Get(t.Context(), ref)
	want(t, "Get", err, bucket.ErrUnavailable)
}

func TestNullVersion(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Amz-Version-Id", "null")
		w.Header().Set("X-Amz-Meta-PAWL-Nonce", "n")
		w.Header().Set("ETag", `"e"`)
	})
	info, err := s.Head(t.Context(), ref)
	if err != nil || info.VersionID != "" || info.ETag != "e" || info.Metadata["pawl-nonce"] != "n" {
		t.Errorf("Head = %+v, %v", info, err)
	}
}
