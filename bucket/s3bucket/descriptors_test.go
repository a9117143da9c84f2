//go:build unix

package s3bucket_test

import (
	"errors"
	"net/http"
	"syscall"
	"testing"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/s3bucket"
)

func TestShortOfDescriptors(t *testing.T) {
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	serve(t, func(http.ResponseWriter, *http.Request) {}) // opens the descriptors of the runtime
	s, err := s3bucket.New(t.Context(), s3bucket.Config{
		Endpoint: "http://127.0.0.1:1", Region: "us-east-1", PathStyle: true, AccessKey: "pawl", SecretKey: "hunter2",
	})
	if err != nil {
		t.Fatal(err)
	}
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	none := before
	none.Cur = 3
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
			t.Fatal(err)
		}
	}()
	every(t, s, func(what string, err error) {
		if !errors.Is(err, syscall.EMFILE) || errors.Is(err, bucket.ErrDenied) {
			t.Errorf("%s = %v, want an error about too many open files", what, err)
		}
	})
}
