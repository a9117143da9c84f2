//go:build unix

// Package examples_test builds the examples and runs them against an in-memory object store.
package examples_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
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

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/internal/fakes3"
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/source/sourcetest"
)

var bin string

func TestMain(m *testing.M) {
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "pawl-examples")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	bin = dir
	build := exec.Command("go", "build", "-o", dir, "./...", "../cmd/pawl")
	if out, err := build.CombinedOutput(); err != nil {
		log.Printf("%v: %s", err, out)
		return 1
	}
	return m.Run()
}

type testEnv struct {
	*testing.T
	dir, store string
}

func newTestEnv(t *testing.T, buckets ...string) *testEnv {
	srv := httptest.NewUnstartedServer(fakes3.New())
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // the fake store sometimes writes a response header twice
	srv.Start()
	t.Cleanup(srv.Close)
	w := &testEnv{t, t.TempDir(), srv.URL}
	for _, b := range buckets {
		w.send(http.MethodPut, srv.URL+"/"+b, "")
	}
	return w
}

// The status is 0 if there is no response.
func (w *testEnv) send(method, url, body string) (int, string) {
	w.Helper()
	return w.request(method, url, body, map[string]string{"Content-Type": "text/plain", "Authorization": "Bearer hush"})
}

func (w *testEnv) request(method, url, body string, header map[string]string) (int, string) {
	w.Helper()
	req, err := http.NewRequestWithContext(w.Context(), method, url, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		w.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

type program struct {
	*exec.Cmd
	out, errs bytes.Buffer
}

func (w *testEnv) program(name string, args ...string) *program {
	p := &program{Cmd: exec.Command(filepath.Join(bin, name), args...)}
	p.Dir, p.Stdout, p.Stderr = w.dir, &p.out, &p.errs
	p.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b", "AWS_REGION=us-east-1",
		"AWS_ENDPOINT_URL="+w.store, "PAWL_WEBHOOK_TOKEN=hush")
	return p
}

func (w *testEnv) start(p *program, env ...string) (end func()) {
	w.Helper()
	p.Env = append(p.Env, env...)
	if err := p.Start(); err != nil {
		w.Fatal(err)
	}
	end = sync.OnceFunc(func() {
		_ = p.Process.Signal(os.Interrupt) // it may already have exited
		_ = p.Wait()                       // the exit code depends on how it ended
	})
	w.Cleanup(end)
	return end
}

func (w *testEnv) run(p *program) string {
	w.Helper()
	if err := p.Run(); err != nil {
		w.Fatalf("%s: %v: %s%s", p.Path, err, &p.out, &p.errs)
	}
	return p.out.String()
}

func (w *testEnv) waitFor(what string, ok func() bool) {
	w.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range 2400 { // two minutes
		if ok() {
			return
		}
		<-tick.C
	}
	w.Fatal(what)
}

func (w *testEnv) wantObject(path, want string) {
	w.Helper()
	w.waitFor("no "+path+" with "+want, func() bool {
		_, got := w.send(http.MethodGet, w.store+"/"+path, "")
		return strings.TrimSpace(got) == want
	})
}

func (w *testEnv) copyOf(name string) {
	w.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.dir, filepath.Base(name)), b, 0o600); err != nil {
		w.Fatal(err)
	}
}

func (w *testEnv) port() string {
	w.Helper()
	address, err := servertest.FreeAddress()
	if err != nil {
		w.Fatal(err)
	}
	_, p, _ := net.SplitHostPort(address)
	return p
}

const upload = `{"account": "a", "action": "PutObject", "bucket": "BUCKET", "object": {"key": "KEY"}, "eventTime": "2026-01-02T03:04:05Z"}`

func (w *testEnv) announce(port, bucket, key string) {
	w.Helper()
	body := strings.NewReplacer("BUCKET", bucket, "KEY", key).Replace(upload)
	w.waitFor("the webhook does not accept it", func() bool {
		code, _ := w.send(http.MethodPost, "http://"+net.JoinHostPort("127.0.0.1", port)+"/events", body)
		return code == http.StatusOK
	})
}

func TestLibrary(t *testing.T) {
	w := newTestEnv(t, "notes", "shouted")
	p := w.port()
	w.send(http.MethodPut, w.store+"/notes/hello.txt", "hello, world")
	w.start(w.program("library"), "LISTEN=127.0.0.1:"+p)
	w.announce(p, "notes", "hello.txt")
	w.wantObject("shouted/hello.txt", "HELLO, WORLD")
}

func TestLambda(t *testing.T) {
	w := newTestEnv(t, "notes", "shouted")
	w.send(http.MethodPut, w.store+"/notes/hello.txt", "hello, world")
	ledger := servertest.DynamoDB(t).NewTable()
	w.run(w.program("pawl", "ledger", "create", ledger))
	log, err := os.Create(filepath.Join(w.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	f := &servertest.Function{Program: filepath.Join(bin, "lambda"), Log: log, Timeout: 30 * time.Second, Env: append(w.program("lambda").Env, "LEDGER="+ledger)}
	payload := strings.ReplaceAll(sourcetest.Payload("hello.txt"), "photos", "notes")
	if _, err := f.Environment(t).Invoke(t.Context(), []byte(payload), nil); err != nil {
		t.Fatalf("%v\n%s", err, f.LogTail(t))
	}
	w.wantObject("shouted/hello.txt", "HELLO, WORLD")
}

func TestMutexAndUpdate(t *testing.T) {
	w := newTestEnv(t, "state")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if got := w.run(w.program("mutex", "state")); !strings.HasSuffix(got, "done\n") {
				t.Errorf("mutex printed %s", got)
			}
			w.run(w.program("update", "state", "red", "blue", "red"))
		})
	}
	all.Wait()
	w.wantObject("state/tally/words.json", `{"words":{"blue":4,"red":8}}`)
}

func TestOnce(t *testing.T) {
	w := newTestEnv(t)
	for _, want := range []string{"loading s3://exports/march.csv created\nnews 1, duplicate 0, stale 0\n", "news 0, duplicate 1, stale 0\n"} {
		message, err := os.Open("once/message.json")
		if err != nil {
			t.Fatal(err)
		}
		p := w.program("once")
		p.Stdin = message
		if got := w.run(p); got != want {
			t.Errorf("printed %s, want %s", got, want)
		}
		if err := message.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFiles(t *testing.T) {
	const secret = "01234567890123456789012345678901"
	srv := servertest.VersityGW(t, servertest.Options{})
	w := &testEnv{t, t.TempDir(), srv.Endpoint}
	if _, err := srv.Client().CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String("uploads")}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.dir, "pawl.yaml"), []byte("files: {to: s3://uploads/files/, secret: "+secret+"}"), 0o600); err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(w.run(w.program("pawl", "files", "token", "read:e", "write:e")))
	hook, api := w.port(), w.port()
	w.start(w.program("files"), "AWS_ACCESS_KEY_ID="+srv.AccessKey, "AWS_SECRET_ACCESS_KEY="+srv.SecretKey, "AWS_REGION="+srv.Region,
		"FILES_SECRET="+secret, "LISTEN=127.0.0.1:"+hook, "API=127.0.0.1:"+api)
	auth := map[string]string{"Authorization": "Bearer " + token, "Content-Type": "application/json"}
	address := "http://127.0.0.1:" + api + "/v1/"
	var begun struct {
		File   struct{ FileID string }
		Upload struct {
			URL     string
			Headers map[string]string
		}
	}
	w.waitFor("no upload begins", func() bool {
		code, text := w.request(http.MethodPost, address+"uploads", fmt.Sprintf(`{"entity":"e","size":5,"contentType":"text/plain","sha256":"%x"}`, sha256.Sum256([]byte("hello"))), auth)
		return code == http.StatusCreated && json.Unmarshal([]byte(text), &begun) == nil
	})
	if code, text := w.request(http.MethodPut, begun.Upload.URL, "hello", begun.Upload.Headers); code != http.StatusOK {
		t.Fatal(code, text)
	}
	w.announce(hook, "uploads", "files/"+begun.File.FileID)
	w.waitFor("the file is not listed", func() bool {
		_, text := w.request(http.MethodGet, address+"entities/e/files", "", auth)
		return strings.Contains(text, begun.File.FileID)
	})
}

func TestExec(t *testing.T) {
	w := newTestEnv(t, "texts", "counts")
	w.send(http.MethodPut, w.store+"/texts/ode.txt", "a rose is\na rose\n")
	w.copyOf("exec/pawl.yaml")
	if err := os.Symlink(filepath.Join(bin, "exec"), filepath.Join(w.dir, "wordcount")); err != nil {
		t.Fatal(err)
	}
	p := w.program("pawl", "replay")
	p.Stdin = strings.NewReader(strings.NewReplacer("BUCKET", "texts", "KEY", "ode.txt").Replace(upload))
	w.run(p)
	w.wantObject("counts/ode.txt.json", `{"key":"ode.txt","lines":2,"words":5}`)
}

// Two workers share a ledger, and each knows the other's completed work.
func TestWorkers(t *testing.T) {
	w := newTestEnv(t, "photos", "photos-mirror")
	w.copyOf("workers/pawl.yaml")
	for _, name := range []string{"one", "two"} {
		p := w.port()
		end := w.start(w.program("pawl", "run"), "PORT="+p)
		w.send(http.MethodPut, w.store+"/photos/"+name, name)
		w.announce(p, "photos", name)
		if name == "one" {
			defer end()
		}
		w.wantObject("photos-mirror/"+name, name)
	}
	w.waitFor("two settled objects in the ledger", func() bool { // an output may appear before its row is settled
		got := w.run(w.program("pawl", "ls", "--ledger", "sqlite:pawl.db", "--json", "--state", "settled"))
		return strings.Count(got, "\n") == 2
	})
}

func (w *testEnv) loseFirstResponse(to *url.URL) http.Handler {
	proxy := httputil.NewSingleHostReverseProxy(to)
	lost := false
	proxy.ModifyResponse = func(r *http.Response) error {
		if !lost {
			lost, r.StatusCode = true, http.StatusBadGateway
		}
		return nil
	}
	return proxy
}

const httpPipeline = `
objects: {endpoint: "${AWS_ENDPOINT_URL}", path_style: true}
pipelines: [{name: load, match: {bucket: exports}, http: {url: "${URL}", secret: "${LOAD_SECRET}"}}]
retry: {base: 1ms}
`

// The effect happens once although its first response is lost.
func TestReceiver(t *testing.T) {
	const secret = "LOAD_SECRET=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	w := newTestEnv(t, "exports")
	w.send(http.MethodPut, w.store+"/exports/march.csv", "1,2,3")
	if err := os.WriteFile(filepath.Join(w.dir, "pawl.yaml"), []byte(httpPipeline), 0o600); err != nil {
		t.Fatal(err)
	}
	p, receiver := w.port(), w.program("receiver")
	end := w.start(receiver, secret, "LISTEN=127.0.0.1:"+p)
	w.waitFor("the receiver does not listen", func() bool {
		code, _ := w.send(http.MethodGet, "http://127.0.0.1:"+p, "")
		return code == http.StatusUnauthorized
	})
	lossy := httptest.NewServer(w.loseFirstResponse(&url.URL{Scheme: "http", Host: "127.0.0.1:" + p}))
	defer lossy.Close()
	replay := w.program("pawl", "replay")
	replay.Env = append(replay.Env, secret, "URL="+lossy.URL)
	replay.Stdin = strings.NewReader(strings.NewReplacer("BUCKET", "exports", "KEY", "march.csv").Replace(upload))
	w.run(replay)
	end()
	if got, want := receiver.out.String(), "loading \"exports/march.csv\" created\nknown \"exports/march.csv\"\n"; got != want {
		t.Errorf("the receiver printed %s, want %s", got, want)
	}
}

func TestLoad(t *testing.T) {
	w := newTestEnv(t, "exports")
	server := servertest.Postgres(t)
	server.Exec("CREATE TABLE sales (day date, amount numeric, _source text); CREATE INDEX ON sales (_source)")
	w.send(http.MethodPut, w.store+"/exports/march.csv", "day,amount\n2026-03-14,1.5\n2026-03-15,2\n")
	w.copyOf("load/pawl.yaml")
	p := w.program("pawl", "replay")
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	password, _ := at.User.Password()
	p.Env = append(p.Env, "DATABASE_HOST="+at.Host, "DATABASE_PASSWORD="+password)
	p.Stdin = strings.NewReader(strings.NewReplacer("BUCKET", "exports", "KEY", "march.csv").Replace(upload))
	w.run(p)
	db, err := pgx.Connect(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close(t.Context()) }()
	var total string
	if err := db.QueryRow(t.Context(), "SELECT sum(amount)::text FROM sales WHERE _source = 's3://exports/march.csv'").Scan(&total); err != nil || total != "3.5" {
		t.Errorf("loaded %s, %v", total, err)
	}
}
