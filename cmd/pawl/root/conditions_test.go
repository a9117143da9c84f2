//go:build unix

package root_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pawlhq/pawl/proof/servertest"
)

// demandConditions enforces the bucket policies of docs/AWS.md: it denies writes without a condition below
// a path, and copies, as S3 does.
func demandConditions(t *testing.T, srv *servertest.Server, paths ...string) (endpoint string, written *atomic.Int64) {
	t.Helper()
	target, err := url.Parse(srv.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(target)
	written = new(atomic.Int64)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		writes := r.Method == http.MethodPut && !q.Has("partNumber") || r.Method == http.MethodPost && q.Has("uploadId")
		demanded := false
		for _, p := range paths {
			demanded = demanded || strings.HasPrefix(r.URL.Path, p)
		}
		status, code := 0, ""
		switch {
		case !writes || !demanded:
		case r.Header.Get("If-Match") == "" && r.Header.Get("If-None-Match") == "":
			status, code = http.StatusForbidden, "AccessDenied"
		case r.Header.Get("X-Amz-Copy-Source") != "":
			status, code = http.StatusNotImplemented, "NotImplemented"
		default:
			written.Add(1)
		}
		if status == 0 {
			forward.ServeHTTP(w, r)
			return
		}
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code></Error>", code) // fails if the caller has disconnected
	}))
	t.Cleanup(proxy.Close)
	return proxy.URL, written
}

func TestWritesHaveACondition(t *testing.T) {
	srv := servertest.MinIO(t, servertest.Options{})
	in, out, state := srv.NewBucket(t), srv.NewBucket(t), srv.NewBucket(t)
	endpoint, written := demandConditions(t, srv, "/"+out+"/", "/"+state+"/locks/")
	put := func(client *s3.Client, name, key string, size int) error {
		_, err := client.PutObject(context.WithoutCancel(t.Context()), &s3.PutObjectInput{Bucket: &name, Key: &key, Body: bytes.NewReader(make([]byte, size))})
		return err
	}
	through := *srv
	through.Endpoint = endpoint
	if err := put(through.Client(), state, "locks/plain", 1); err == nil || !strings.Contains(err.Error(), "AccessDenied") {
		t.Errorf("a plain PUT: %v, want it denied", err)
	}

	dir := t.TempDir()
	env := append(os.Environ(), "AWS_ACCESS_KEY_ID="+srv.AccessKey, "AWS_SECRET_ACCESS_KEY="+srv.SecretKey, "AWS_REGION=us-east-1",
		"XDG_CACHE_HOME="+dir, "HOME="+dir)
	pawl := func(args ...string) {
		t.Helper()
		cmd := exec.Command("pawl", args...)
		cmd.Env, cmd.Dir = env, dir
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("pawl %q: %v: %s", args, err, text)
		}
		if written.Swap(0) == 0 {
			t.Errorf("pawl %q wrote nothing", args)
		}
	}
	locks := "s3://" + state + "/locks/"
	for i, how := range [][]string{nil, {"--shared"}, {"--semaphore", "2"}} {
		args := append([]string{"lock", "--endpoint", endpoint}, how...)
		pawl(append(args, fmt.Sprint(locks, i), "--", "true")...)
	}
	pawl("update", "--endpoint", endpoint, "--create", locks+"n", "--", "date", "+%N")

	sizes := map[string]int{"small": 100, "large": 20 << 20} // the store copies the large one
	var events strings.Builder
	for key, size := range sizes {
		if err := put(srv.Client(), in, key, size); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&events, `{"Records":[{"eventVersion":"2.6","eventSource":"aws:s3","eventTime":"2026-02-03T04:05:06.700Z","eventName":"ObjectCreated:Put","s3":{"bucket":{"name":%q},"object":{"key":%q,"sequencer":"01"}}}]}`+"\n", in, key)
	}
	config := fmt.Sprintf("ledger: sqlite:pawl.db\nobjects: {endpoint: %q, region: us-east-1, path_style: true}\n"+
		"pipelines: [{name: mirror, match: {bucket: %s}, copy: {to: s3://%s/copies/}}]\n", endpoint, in, out)
	for name, text := range map[string]string{"pawl.yaml": config, "events.ndjson": events.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pawl("replay", "events.ndjson")
	for key, size := range sizes {
		made := "copies/" + key
		got, err := srv.Client().GetObject(t.Context(), &s3.GetObjectInput{Bucket: &out, Key: &made})
		if err != nil {
			t.Errorf("the copy of %s: %v", key, err)
			continue
		}
		n, err := io.Copy(io.Discard, got.Body)
		if parts := strings.HasSuffix(*got.ETag, `-1"`); int(n) != size || err != nil || parts != (key == "large") {
			t.Errorf("the copy of %s: %d bytes, %v, ETag %s", key, n, err, *got.ETag)
		}
	}
}
