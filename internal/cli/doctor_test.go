//go:build unix

package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawlhq/pawl/internal/cli"
	"github.com/pawlhq/pawl/internal/fakes3"
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

// TestDoctorRenewsTheProof examines a store that comes to ignore preconditions, and
// to honour them again.
func TestDoctorRenewsTheProof(t *testing.T) {
	below := fakes3.New()
	var careless atomic.Bool
	var proofs atomic.Int64
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if careless.Load() {
			r.Header.Del("If-Match")
			r.Header.Del("If-None-Match")
		}
		if strings.HasSuffix(r.URL.Path, "/quick") {
			proofs.Add(1)
		}
		below.ServeHTTP(w, r)
	}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // the fake answers twice, now and then
	srv.Start()
	t.Cleanup(srv.Close)
	if err := send(http.MethodPut, srv.URL+"/state", ""); err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	pawl := func(code int, args ...string) {
		t.Helper()
		cmd := exec.Command("pawl", args...)
		cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b", "AWS_REGION=us-east-1",
			"AWS_ENDPOINT_URL="+srv.URL, "XDG_CACHE_HOME="+cache, "HOME="+cache)
		out, err := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != code {
			t.Errorf("pawl %q: exit code %d, want %d: %v: %s", args, got, code, err, out)
		}
	}
	update := []string{"update", "--create", "s3://state/n", "--", "date", "+%N"}
	pawl(0, update...)
	if proofs.Swap(0) == 0 {
		t.Error("it was not proved before the first use")
	}
	pawl(0, update...)
	careless.Store(true)
	pawl(0, update...) // it is believed
	pawl(3, "doctor", "s3://state")
	proofs.Store(0)
	pawl(64, update...)
	careless.Store(false)
	pawl(64, update...) // doctor is believed, too
	pawl(0, "doctor", "s3://state")
	pawl(0, update...)
	if n := proofs.Load(); n > 0 {
		t.Errorf("%d requests prove again what doctor has proved", n)
	}
}
