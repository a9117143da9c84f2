//go:build unix

package e2e

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pawlhq/pawl/proof/servertest"
)

var archiveThrottle = flag.Duration("archivethrottle", 2*time.Second, "duration of throttling in TestArchiveFailures")

// A worker exits if the stream is missing or access is denied. Throttling and denied objects only delay it.
// Verify reports a foreign object, and no command changes it.
func TestArchiveFailures(t *testing.T) {
	servertest.Long(t)
	t.Parallel()
	a := newArchiveTest(t, servertest.Kinesalite(t), rand.New(rand.NewPCG(*firstSeed, 17)))
	streams, objects := newRejectingProxy(t, a.streams.Endpoint), newRejectingProxy(t, a.server.Endpoint)
	a.writeConfig("missing", streams.url, objects.url)
	a.runFails(2, "stream missing in us-east-1: stream not found (check its name", "archive", "run")
	a.writeConfig(a.stream, streams.url, objects.url)
	streams.reject(kinesisError("AccessDeniedException"), func(*http.Request) bool { return true })
	a.runFails(2, "access to the stream denied (check the credentials", "archive", "run")
	if len(a.list()) > 0 {
		t.Errorf("%q are stored before a worker has started", a.list())
	}

	streams.reject(nil, nil)
	a.fleet.start(t, 1)
	a.putUntil(100)
	a.waitUntilStored()
	var until time.Time
	throttled := streams.reject(kinesisError("ProvisionedThroughputExceededException"), func(*http.Request) bool {
		if until.IsZero() {
			until = time.Now().Add(*archiveThrottle)
		}
		return time.Now().Before(until)
	})
	puts := 0
	denied := objects.reject(deny, func(r *http.Request) bool {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/clicks/20") {
			puts++
			return 1 < puts && puts < 5
		}
		return false
	})
	a.putUntil(10_000)
	a.waitUntilStored()
	a.fleet.stop(t)
	said, err := os.ReadFile(filepath.Join(a.fleet.dir, "worker-0.log"))
	if err != nil || throttled() == 0 || denied() != 3 || !bytes.Contains(said, []byte("cannot store more of a shard")) ||
		!bytes.Contains(said, []byte("access denied")) {
		t.Errorf("throttled %d times, denied %d times, log (%v):\n%s", throttled(), denied(), err, said)
	}
	if *archiveThrottle > 70*time.Second && !bytes.Contains(said, []byte("ProvisionedThroughputExceededException")) {
		t.Errorf("the log does not report throttling for more than a minute:\n%s", said)
	}
	a.verify()
	a.readAll()

	a.checkForeignObject("clicks/2026/notes.txt")
}

func (a *archiveTest) runFails(code int, says string, args ...string) {
	a.Helper()
	cmd := exec.CommandContext(a.Context(), a.fleet.binary, append(args, "-c", a.fleet.config)...)
	cmd.Env = append(os.Environ(), a.fleet.env...)
	out, err := cmd.CombinedOutput()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.ExitCode() != code || !strings.Contains(string(out), says) {
		a.Errorf("%q ended with %v, want the code %d and %q:\n%s", args, err, code, says, out)
	}
}

func (a *archiveTest) list() (keys []string) {
	a.Helper()
	prefix := "clicks/20"
	got, err := a.server.Client().ListObjectsV2(a.Context(), &s3.ListObjectsV2Input{Bucket: &a.bucket, Prefix: &prefix})
	if err != nil {
		a.Fatal(err)
	}
	for _, o := range got.Contents {
		keys = append(keys, *o.Key)
	}
	return keys
}

func (a *archiveTest) checkForeignObject(key string) {
	a.Helper()
	const text = "not the archive's"
	if _, err := a.server.Client().PutObject(a.Context(), &s3.PutObjectInput{Bucket: &a.bucket, Key: &key, Body: strings.NewReader(text)}); err != nil {
		a.Fatal(err)
	}
	a.runFails(3, "foreign: the key does not belong to this archive: move the object elsewhere\n  s3://"+a.bucket+"/"+key, "archive", "verify", "--deep")
	got, err := a.server.Client().GetObject(a.Context(), &s3.GetObjectInput{Bucket: &a.bucket, Key: &key})
	if err != nil {
		a.Fatal(err)
	}
	defer got.Body.Close()
	if body, err := io.ReadAll(got.Body); err != nil || string(body) != text {
		a.Errorf("%s holds %q, %v", key, body, err)
	}
}

type rejectingProxy struct {
	url   string
	proxy *httputil.ReverseProxy

	mu       sync.Mutex
	matches  func(*http.Request) bool
	answer   http.HandlerFunc
	rejected int
}

func newRejectingProxy(t *testing.T, endpoint string) *rejectingProxy {
	t.Helper()
	server, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	g := &rejectingProxy{proxy: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(server)
			r.Out.Host = r.In.Host // because it is signed
		},
		ErrorLog: log.New(io.Discard, "", 0),
	}}
	srv := httptest.NewServer(g)
	t.Cleanup(srv.Close)
	g.url = srv.URL
	return g
}

func (g *rejectingProxy) reject(answer http.HandlerFunc, which func(*http.Request) bool) (count func() int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.matches, g.answer, g.rejected = which, answer, 0
	return func() int {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.rejected
	}
}

func (g *rejectingProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	answer := http.HandlerFunc(g.proxy.ServeHTTP)
	if g.matches != nil && g.matches(r) {
		answer = g.answer
		g.rejected++
	}
	g.mu.Unlock()
	answer(w, r)
}

func kinesisError(code string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"__type":"`+code+`","message":"from the test"}`)
	}
}

func deny(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(http.StatusForbidden)
	_, _ = io.WriteString(w, `<Error><Code>AccessDenied</Code><Message>from the test</Message></Error>`)
}
