package s3bucket_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/s3bucket"
	"github.com/pawlhq/pawl/internal/virtualtime"
)

type doing func(*http.Request) (*http.Response, error)

func (d doing) Do(r *http.Request) (*http.Response, error) { return d(r) }

func sentBy(t *testing.T, c doing) *s3bucket.Store {
	t.Helper()
	s, err := s3bucket.New(t.Context(), s3bucket.Config{Endpoint: "http://127.0.0.1:1", AccessKey: "pawl", SecretKey: "hunter2"})
	if err != nil {
		t.Fatal(err)
	}
	s.SendBy(c)
	return s
}

func TestASilentRead(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		s := sentBy(t, func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		began := time.Now()
		_, _, err := s.Get(t.Context(), ref)
		want(t, "Get", err, bucket.ErrUnavailable)
		if took := time.Since(began); took != 20*time.Second || !strings.Contains(err.Error(), "no response within 20s") {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

// slow returns one byte per hour until the request is cancelled.
type slow struct {
	io.Reader
	request *http.Request
}

func (s *slow) Read(p []byte) (int, error) {
	select {
	case <-time.After(time.Hour):
		return s.Reader.Read(p)
	case <-s.request.Context().Done():
		return 0, s.request.Context().Err()
	}
}

func TestASlowContent(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		text := []byte("slowly")
		s := sentBy(t, func(r *http.Request) (*http.Response, error) {
			body := io.NopCloser(&slow{iotest.OneByteReader(bytes.NewReader(text)), r})
			return &http.Response{StatusCode: http.StatusOK, ContentLength: int64(len(text)), Body: body, Header: http.Header{
				"Content-Length": {"6"},
			}}, nil
		})
		_, body, err := s.Get(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(body); err != nil || !bytes.Equal(got, text) {
			t.Errorf("%q, %v", got, err)
		}
		if err := body.Close(); err != nil {
			t.Error(err)
		}
	})
}
