//go:build unix

package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/internal/cli"
	"github.com/pawlhq/pawl/internal/servertest"
)

// TestDoctorHearsNotifications asks MinIO, which knows what it was asked to tell.
func TestDoctorHearsNotifications(t *testing.T) {
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(hook.Close)
	srv := servertest.MinIO(t, servertest.Options{Webhook: hook.URL})
	told, silent := srv.NewBucket(t), srv.NewBucket(t)
	srv.Notify(t, told)
	t.Setenv("AWS_ACCESS_KEY_ID", srv.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", srv.SecretKey)
	file := filepath.Join(t.TempDir(), "pawl.yaml")
	text := fmt.Sprintf(`
objects: {endpoint: %q, region: us-east-1, path_style: true}
pipelines:
  - {name: hears, match: {bucket: %s, prefix: in/, suffix: [.jpg]}, copy: {to: s3://out/a/}}
  - {name: deaf, match: {bucket: %s}, copy: {to: s3://out/b/}}
`, srv.Endpoint, told, silent)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		bucket, pipeline, heard, to string
		code                        int
	}{
		{told, "hears", "yes", "arn:minio:sqs::H:webhook", 0},
		{silent, "deaf", "no", "", 3},
	} {
		var out, errs bytes.Buffer
		code := cli.Main(t.Context(), []string{"doctor", "s3://" + tc.bucket, "-c", file, "--json"},
			cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
		if code != tc.code || errs.Len() > 0 {
			t.Errorf("%s: exit code %d, want %d: %s", tc.pipeline, code, tc.code, &errs)
		}
		var got struct {
			Safe          bool
			Notifications []struct {
				Pipeline, Created, Removed string
				To                         []string
			}
		}
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatalf("%v: %s", err, &out)
		}
		n := got.Notifications
		if !got.Safe || len(n) != 1 || n[0].Pipeline != tc.pipeline || n[0].Created != tc.heard || n[0].Removed != tc.heard || strings.Join(n[0].To, " ") != tc.to {
			t.Errorf("%s: %+v", tc.pipeline, got)
		}
	}
}
