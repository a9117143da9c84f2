//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pawlhq/pawl/action"
	"github.com/pawlhq/pawl/proof/servertest"
)

const (
	outageBegins = "the receiver is down"
	outageEnds   = "the receiver works again"
)

const outageConfig = `
ledger: sqlite:%s
objects: {endpoint: %q, path_style: true}
sweep_interval: 20ms
retry: {attempts: 2, base: 50ms, max: 200ms}
pipelines: [{name: tell, match: {bucket: photos}, http: {url: "http://%s"}}]
`

func TestReceiverDown(t *testing.T) {
	t.Parallel()
	const objects = 20
	dir := t.TempDir()
	server := servertest.MinIO(t, servertest.Options{})
	address, err := servertest.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	config, events := filepath.Join(dir, "pawl.yaml"), filepath.Join(dir, "events.json")
	for path, text := range map[string]string{
		config: fmt.Sprintf(outageConfig, filepath.Join(dir, "pawl.db"), server.Endpoint, address),
		events: putPhotos(t, server, objects),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	said := func() string {
		b, err := os.ReadFile(log.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	cmd := exec.CommandContext(t.Context(), build(t), "replay", "-c", config, events)
	cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID="+server.AccessKey, "AWS_SECRET_ACCESS_KEY="+server.SecretKey, "AWS_REGION="+server.Region)
	cmd.Stdout, cmd.Stderr = log, log
	servertest.DieWithParent(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()

	waitFor(t, ended, said, func() bool { return strings.Contains(said(), outageBegins) })
	receiver := &outageReceiver{rejectFirst: 10, keys: map[string]bool{}}
	receiver.listen(t, address)
	if err := <-ended; err != nil { // 3 if a row died
		t.Errorf("pawl replay: %v", err)
	}
	if receiver.count() != objects {
		t.Errorf("the receiver was called for %d objects, want %d", receiver.count(), objects)
	}
	for _, text := range []string{outageBegins, outageEnds} {
		if n := strings.Count(said(), text); n != 1 {
			t.Errorf("the log contains %d times %q, want once", n, text)
		}
	}
	if t.Failed() {
		t.Log(said())
	}
}

func putPhotos(t *testing.T, server *servertest.Server, n int) (events string) {
	t.Helper()
	if _, err := server.Client().CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String("photos")}); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		key := fmt.Sprint(i)
		if _, err := server.Client().PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("photos"), Key: &key, Body: strings.NewReader(key)}); err != nil {
			t.Fatal(err)
		}
		events += fmt.Sprintf(`{"EventName":"s3:ObjectCreated:Put","Key":"photos/%s","Records":[%s]}`, key, minioRecord("ObjectCreated:Put", key)) + "\n"
	}
	return events
}

func waitFor(t *testing.T, ended <-chan error, said func() string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for !holds() {
		select {
		case <-tick.C:
		case err := <-ended:
			t.Fatalf("the process exited: %v\n%s", err, said())
		case <-deadline:
			t.Fatalf("not within a minute:\n%s", said())
		}
	}
}

// outageReceiver first answers with 503, like a service that is starting.
type outageReceiver struct {
	mu          sync.Mutex
	rejectFirst int
	keys        map[string]bool
}

func (r *outageReceiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.keys)
}

func (r *outageReceiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var facts action.Facts
	if err := json.NewDecoder(req.Body).Decode(&facts); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rejectFirst > 0 {
		r.rejectFirst--
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	r.keys[facts.Key] = true
}

func (r *outageReceiver) listen(t *testing.T, address string) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: r}}
	s.Start()
	t.Cleanup(s.Close)
}
