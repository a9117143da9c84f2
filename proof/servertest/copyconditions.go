package servertest

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pawlhq/pawl/bucket"
)

// WithCopyConditions starts a proxy that rejects a CopyObject whose condition does not hold, as S3
// does.
func WithCopyConditions(t testing.TB, s *Server) *Server {
	t.Helper()
	target, err := url.Parse(s.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(target)
	client := s.Client()
	var mu sync.Mutex
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			mu.Lock()
			defer mu.Unlock()
		}
		if r.Header.Get("X-Amz-Copy-Source") == "" || r.URL.RawQuery != "" && r.URL.Query().Has("uploadId") {
			forward.ServeHTTP(w, r)
			return
		}
		status, err := copyStatus(r, client)
		if err != nil {
			t.Error(err)
		}
		if status != http.StatusOK {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "<Error><Code>"+map[int]string{404: "NoSuchKey", 412: "PreconditionFailed"}[status]+"</Code></Error>")
			return
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	honest := *s
	honest.Name, honest.Endpoint, honest.CopyConditions = s.Name+"-copies", proxy.URL, s.CopyConditions|bucket.CopyWhole
	return &honest
}

func copyStatus(r *http.Request, client *s3.Client) (int, error) {
	name, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	match, noneMatch := r.Header.Get("If-Match"), r.Header.Get("If-None-Match")
	now, err := client.HeadObject(r.Context(), &s3.HeadObjectInput{Bucket: &name, Key: &key})
	_, missing := errors.AsType[*types.NotFound](err)
	switch {
	case err != nil && !missing:
		return http.StatusInternalServerError, err
	case missing && match != "":
		return http.StatusNotFound, nil
	case !missing && (noneMatch != "" || match != "" && match != aws.ToString(now.ETag)):
		return http.StatusPreconditionFailed, nil
	}
	return http.StatusOK, nil
}
