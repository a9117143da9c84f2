//go:build unix

package root_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pawlhq/pawl/internal/fakes3"
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store/sqlite"
)

// exits CODE COMMAND ARG...: runs a command and checks its exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits code command arg...")
	}
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		code = exit.ExitCode()
	}
	if want := args[0]; strconv.Itoa(code) != want {
		ts.Fatalf("exit code %d, want %s", code, want)
	}
}

// s3 BUCKET...: starts an object store with these buckets, at $S3.
func startS3(ts *testscript.TestScript, _ bool, buckets []string) {
	startHandler(ts, buckets, fakes3.New().ServeHTTP)
}

func startHandler(ts *testscript.TestScript, buckets []string, h http.HandlerFunc) {
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // the fake sometimes responds twice
	srv.Start()
	ts.Defer(srv.Close)
	ts.Setenv("S3", srv.URL)
	for _, b := range buckets {
		ts.Check(send(http.MethodPut, srv.URL+"/"+b, ""))
	}
}

// s3-probing URL BUCKET...: starts an object store with these buckets, at $S3. Like versitygw, the store is
// unavailable until the URL has accepted a test event.
func startProbing(ts *testscript.TestScript, _ bool, args []string) {
	below := fakes3.New()
	startHandler(ts, nil, func(w http.ResponseWriter, r *http.Request) {
		if send(http.MethodPost, args[0], `{"Event":"s3:TestEvent","Service":"versitygw"}`) != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		below.ServeHTTP(w, r)
	})
	for _, b := range args[1:] {
		r := httptest.NewRequest(http.MethodPut, "/"+b, http.NoBody)
		below.ServeHTTP(httptest.NewRecorder(), r)
	}
}

// denied: starts an object store that denies all requests, at $S3.
func startDenied(ts *testscript.TestScript, _ bool, _ []string) {
	srv := httptest.NewServer(http.HandlerFunc(deny))
	ts.Defer(srv.Close)
	ts.Setenv("S3", srv.URL)
}

func deny(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(http.StatusForbidden)
	_, _ = io.WriteString(w, `<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>`)
}

// denied-suffix SUFFIX BUCKET...: starts an object store with these buckets, at $S3, that
// denies reads of keys with this suffix.
func startPartlyDenied(ts *testscript.TestScript, _ bool, args []string) {
	below := fakes3.New()
	startHandler(ts, args[1:], func(w http.ResponseWriter, r *http.Request) {
		if (r.Method == http.MethodGet || r.Method == http.MethodHead) && strings.HasSuffix(r.URL.Path, args[0]) {
			deny(w, r)
			return
		}
		below.ServeHTTP(w, r)
	})
}

// The environment is for clients of the store.
func newStore(t *testing.T, h http.HandlerFunc) (url string, env []string) {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // the fake sometimes responds twice
	srv.Start()
	t.Cleanup(srv.Close)
	if err := send(http.MethodPut, srv.URL+"/state", ""); err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	return srv.URL, append(os.Environ(), "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b", "AWS_REGION=us-east-1",
		"AWS_ENDPOINT_URL="+srv.URL, "XDG_CACHE_HOME="+cache, "HOME="+cache)
}

// put BUCKET KEY TEXT: writes an object. The key is Go-quoted, or plain.
func put(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(send(http.MethodPut, objectURL(ts, args[0], args[1]), args[2]))
}

// copy BUCKET KEY TO: has the server copy an object, with its metadata.
func copyObject(ts *testscript.TestScript, _ bool, args []string) {
	req, err := http.NewRequest(http.MethodPut, objectURL(ts, args[0], args[2]), nil)
	ts.Check(err)
	req.Header.Set("X-Amz-Copy-Source", "/"+args[0]+"/"+args[1])
	resp, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		ts.Fatalf("copy %s: %s", args, resp.Status)
	}
}

// delete BUCKET KEY: removes an object.
func remove(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(send(http.MethodDelete, objectURL(ts, args[0], args[1]), ""))
}

// object BUCKET KEY TEXT: waits until the object has this content; with !, until it is
// missing.
func object(ts *testscript.TestScript, neg bool, args []string) {
	u := objectURL(ts, args[0], args[1])
	got := ""
	ok := poll(func() bool {
		resp, err := http.Get(u)
		if err != nil {
			got = err.Error()
			return false
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		got = fmt.Sprintf("%s %s %v", resp.Status, b, err)
		if neg {
			return resp.StatusCode == http.StatusNotFound
		}
		return resp.StatusCode == http.StatusOK && string(b) == args[2]
	})
	if !ok {
		ts.Fatalf("object %s: %s", u, got)
	}
}

func objectURL(ts *testscript.TestScript, bucket, key string) string {
	if s, err := strconv.Unquote(key); err == nil {
		key = s
	}
	return ts.Getenv("S3") + "/" + bucket + "/" + url.PathEscape(key)
}

func send(method, url, body string) error {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	// Without a type, GET and HEAD of the fake return different types.
	req.Header.Set("Content-Type", "application/octet-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s", method, url, resp.Status)
	}
	return nil
}

// port NAME: sets $NAME to a free port.
func port(ts *testscript.TestScript, _ bool, args []string) {
	address, err := servertest.FreeAddress()
	ts.Check(err)
	_, p, err := net.SplitHostPort(address)
	ts.Check(err)
	ts.Setenv(args[0], p)
}

// post URL FILE CODE [AUTHORIZATION]: waits for a listener, posts a file, and checks the
// status code.
func post(ts *testscript.TestScript, _ bool, args []string) {
	body, got := ts.ReadFile(args[1]), ""
	ok := poll(func() bool {
		req, err := http.NewRequest(http.MethodPost, args[0], strings.NewReader(body))
		ts.Check(err)
		if len(args) > 3 {
			req.Header.Set("Authorization", args[3])
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			got = err.Error()
			return false
		}
		defer resp.Body.Close()
		got = strconv.Itoa(resp.StatusCode)
		return true
	})
	if !ok || got != args[2] {
		ts.Fatalf("post %s: %s, want %s", args[0], got, args[2])
	}
}

// terminate: sends SIGTERM to the background commands.
func terminate(ts *testscript.TestScript, _ bool, _ []string) {
	for _, cmd := range ts.BackgroundCmds() {
		ts.Check(cmd.Process.Signal(syscall.SIGTERM))
	}
}

// terminateRepeatedly: terminates what runs in the background again and again, until it has ended.
func terminateRepeatedly(ts *testscript.TestScript, _ bool, _ []string) {
	ended := poll(func() bool {
		ended := true
		for _, cmd := range ts.BackgroundCmds() {
			ended = cmd.Process.Signal(syscall.SIGTERM) != nil && ended
		}
		return ended
	})
	if !ended {
		ts.Fatalf("a background command still runs")
	}
}

// released FIFO: waits until no process reads the FIFO.
func released(ts *testscript.TestScript, _ bool, args []string) {
	ok := poll(func() bool {
		f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err == nil {
			ts.Check(f.Close())
		}
		return errors.Is(err, syscall.ENXIO)
	})
	if !ok {
		ts.Fatalf("a process still holds %s open", args[0])
	}
}

// closed ADDRESS: waits until no process listens on the address.
func closed(ts *testscript.TestScript, _ bool, args []string) {
	ok := poll(func() bool {
		c, err := net.Dial("tcp", args[0])
		if err != nil {
			return true
		}
		ts.Check(c.Close())
		return false
	})
	if !ok {
		ts.Fatalf("%s still listens", args[0])
	}
}

// get URL CODE TEXT...: waits for a response with this status code and these texts in the body.
func get(ts *testscript.TestScript, _ bool, args []string) {
	got := ""
	ok := poll(func() bool {
		resp, err := http.Get(args[0])
		if err != nil {
			got = err.Error()
			return false
		}
		body, err := io.ReadAll(resp.Body)
		got = fmt.Sprintf("%s %s %v", resp.Status, body, errors.Join(err, resp.Body.Close()))
		return strconv.Itoa(resp.StatusCode) == args[1] && !slices.ContainsFunc(args[2:], func(text string) bool { return !strings.Contains(string(body), text) })
	})
	if !ok {
		ts.Fatalf("get %s: want %s\n%s", args[0], args[1:], got)
	}
}

// await TEXT COMMAND ARG...: repeats a command until its output contains the text.
func await(ts *testscript.TestScript, _ bool, args []string) {
	ok := poll(func() bool {
		ts.Check(ts.Exec(args[1], args[2:]...))
		return strings.Contains(ts.ReadFile("stdout"), args[0])
	})
	if !ok {
		ts.Fatalf("%q is not in the output", args[0])
	}
}

// poll gives up after two minutes.
func poll(f func() bool) bool {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range 2400 {
		if f() {
			return true
		}
		<-tick.C
	}
	return false
}

// json [LINE] PATH VALUE: checks that the field at PATH (a.b.0) has this value, in a line
// (default 1) of the JSON output; with !, that the line has no such field. A path that
// starts with @ refers to standard error.
func jsonField(ts *testscript.TestScript, neg bool, args []string) {
	line := 1
	if n, err := strconv.Atoi(args[0]); err == nil {
		line, args = n, args[1:]
	}
	path, stream := args[0], "stdout"
	if rest, ok := strings.CutPrefix(path, "@"); ok {
		path, stream = rest, "stderr"
	}
	lines := strings.Split(strings.TrimSpace(ts.ReadFile(stream)), "\n")
	if line > len(lines) {
		ts.Fatalf("%s has %d lines, not %d", stream, len(lines), line)
	}
	var v any
	if err := json.Unmarshal([]byte(lines[line-1]), &v); err != nil {
		ts.Fatalf("line %d of %s is not JSON: %v\n%s", line, stream, err, lines[line-1])
	}
	got, ok := dig(v, path)
	switch {
	case neg && ok:
		ts.Fatalf("unexpected field %s: %v", path, got)
	case !neg && !ok:
		ts.Fatalf("%s is missing in %s", path, lines[line-1])
	case !neg && len(args) > 1 && fmt.Sprint(got) != args[1]:
		ts.Fatalf("%s is %v, want %s", path, got, args[1])
	}
}

func dig(v any, path string) (any, bool) {
	for _, step := range strings.Split(path, ".") {
		switch t := v.(type) {
		case map[string]any:
			next, ok := t[step]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(t) {
				return nil, false
			}
			v = t[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// index FILE: creates an empty index of files.
func index(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: index FILE")
	}
	x, err := sqlite.Open(context.Background(), ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(x.Close())
}
