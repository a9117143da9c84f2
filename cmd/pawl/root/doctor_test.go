//go:build unix

package root_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/root"
	"github.com/pawlhq/pawl/internal/fakes3"
	"github.com/pawlhq/pawl/proof/servertest"
)

func TestDoctorReceivesNotifications(t *testing.T) {
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(hook.Close)
	srv := servertest.MinIO(t, servertest.Options{Webhook: hook.URL})
	notified, silent := srv.NewBucket(t), srv.NewBucket(t)
	srv.Notify(t, notified)
	t.Setenv("AWS_ACCESS_KEY_ID", srv.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", srv.SecretKey)
	file := filepath.Join(t.TempDir(), "pawl.yaml")
	text := fmt.Sprintf(`
objects: {endpoint: %q, region: us-east-1, path_style: true}
pipelines:
  - {name: hears, match: {bucket: %s, prefix: in/, suffix: [.jpg]}, copy: {to: s3://out/a/}}
  - {name: deaf, match: {bucket: %s}, copy: {to: s3://out/b/}}
`, srv.Endpoint, notified, silent)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		bucket, pipeline, heard, to string
		code                        int
	}{
		{notified, "hears", "yes", "arn:minio:sqs::H:webhook", 0},
		{silent, "deaf", "no", "", 3},
	} {
		var out, errs bytes.Buffer
		code := root.Main(t.Context(), []string{"doctor", "s3://" + tc.bucket, "-c", file, "--json"},
			app.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
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

type doctorFixture struct {
	t   *testing.T
	env []string
}

func newDoctorFixture(t *testing.T, h http.HandlerFunc) *doctorFixture {
	t.Helper()
	_, env := newStore(t, h)
	return &doctorFixture{t, env}
}

func (e *doctorFixture) pawl(code int, says string, args ...string) {
	e.t.Helper()
	cmd := exec.Command("pawl", args...)
	cmd.Env = e.env
	out, err := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != code || !strings.Contains(string(out), says) {
		e.t.Errorf("pawl %q: exit code %d, want %d and %q: %v: %s", args, got, code, says, err, out)
	}
}

// The store starts to ignore preconditions, and later honours them again.
func TestDoctorUpdatesSavedResult(t *testing.T) {
	t.Parallel()
	below := fakes3.New()
	var careless atomic.Bool
	var proofs atomic.Int64
	e := newDoctorFixture(t, func(w http.ResponseWriter, r *http.Request) {
		if careless.Load() {
			r.Header.Del("If-Match")
			r.Header.Del("If-None-Match")
		}
		if strings.HasSuffix(r.URL.Path, "/preconditions") {
			proofs.Add(1)
		}
		below.ServeHTTP(w, r)
	})
	update := []string{"update", "--create", "s3://state/n", "--", "date", "+%N"}
	e.pawl(0, "", update...)
	if proofs.Swap(0) == 0 {
		t.Error("the store was not checked before its first use")
	}
	e.pawl(0, "", update...)
	careless.Store(true)
	e.pawl(0, "", update...) // uses the saved result
	e.pawl(3, "", "doctor", "s3://state")
	proofs.Store(0)
	e.pawl(64, "locks and updates are not safe: it ignores If-None-Match", update...)
	careless.Store(false)
	e.pawl(64, "", update...) // uses doctor's result
	e.pawl(0, "", "doctor", "s3://state")
	e.pawl(0, "", update...)
	if n := proofs.Load(); n > 0 {
		t.Errorf("%d requests repeat doctor's check", n)
	}
}

// Listings start to omit recent writes occasionally, and later show them again.
func TestDoctorRefusesListings(t *testing.T) {
	t.Parallel()
	below := fakes3.New()
	var hiding atomic.Bool
	var fresh sync.Map // paths
	contents := regexp.MustCompile(`(?s)<Contents>.*?<Key>(.*?)</Key>.*?</Contents>`)
	e := newDoctorFixture(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/list-after-write"):
			fresh.Store(r.URL.Path, true)
		case hiding.Load() && r.URL.Query().Has("list-type"):
			answer := httptest.NewRecorder()
			below.ServeHTTP(answer, r)
			shown := contents.ReplaceAllStringFunc(answer.Body.String(), func(c string) string {
				key, err := url.QueryUnescape(contents.FindStringSubmatch(c)[1])
				if _, ok := fresh.LoadAndDelete("/state/" + key); ok || err != nil {
					return ""
				}
				return c
			})
			_, _ = io.WriteString(w, shown) // the test looks for missing entries
			return
		}
		below.ServeHTTP(w, r)
	})
	alone := [][]string{
		{"lock", "s3://state/a", "--", "true"},
		{"update", "--create", "s3://state/n", "--", "date", "+%N"},
	}
	together := map[string][]string{
		"semaphores and shared locks": {"--shared", "--semaphore=2"},
	}
	try := func(code int, says string) {
		t.Helper()
		for _, args := range alone {
			e.pawl(0, "", args...)
		}
		for feature, flags := range together {
			said := says
			if says != "" {
				said = "pawl: s3://state: " + feature + " are not safe: " + says
			}
			for i, flag := range flags {
				e.pawl(code, said, "lock", flag, fmt.Sprintf("s3://state/%c%d", feature[0], i), "--", "true")
			}
		}
	}
	try(0, "")
	hiding.Store(true)
	e.pawl(3, "list-after-write   failed", "doctor", "s3://state")
	const found = "list-after-write failed (found by \"pawl doctor\" on "
	try(64, found)
	hiding.Store(false)
	try(64, found) // uses doctor's result
	e.pawl(0, "", "doctor", "s3://state")
	try(0, "")
}
