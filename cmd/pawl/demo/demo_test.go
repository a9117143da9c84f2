package demo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/pawlhq/pawl/cmd/pawl/demo"
)

var binary string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "pawl-demo-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "pawl")
	if out, err := exec.Command("go", "build", "-o", binary, "github.com/pawlhq/pawl/cmd/pawl").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building pawl: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

func TestOnce(t *testing.T) {
	for _, seed := range []string{"1", "20260212"} {
		t.Run(seed, func(t *testing.T) {
			t.Parallel()
			var stderr bytes.Buffer
			cmd := exec.CommandContext(t.Context(), binary, "demo", "--once", "--json", "--seed", seed)
			cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s\n%s", err, out, &stderr)
			}
			var r demo.PipelineReport
			if err := json.Unmarshal(out, &r); err != nil {
				t.Fatalf("%v in %s", err, out)
			}
			t.Logf("%s", out)
			checkReport(t, &r)
			if tmp := cmd.Env[len(cmd.Env)-1]; !empty(t, strings.TrimPrefix(tmp, "TMPDIR=")) {
				t.Error("the demo left its folder behind")
			}
		})
	}
}

func checkReport(t *testing.T, r *demo.PipelineReport) {
	t.Helper()
	if !r.OK || r.Outputs.Right == 0 || r.Outputs.Right != r.Outputs.Of {
		t.Errorf("a check failed: %+v", r)
	}
	for what, n := range map[string]int{
		"put": r.Uploads.Put, "overwritten": r.Uploads.Overwritten, "removed": r.Uploads.Removed,
		"doubled": r.Notifications.Doubled, "out of order": r.Notifications.OutOfOrder,
		"delayed": r.Notifications.Delayed, "dropped": r.Notifications.Dropped,
		"killed": r.Workers.Killed, "held by the killed worker": r.Workers.Held, "taken over": r.Effects.TakenOver,
		"duplicates refused": r.Effects.Duplicates, "stale refused": r.Effects.Stale, "healed": r.Effects.Healed,
		"removed outputs": r.Effects.Committed.Removed,
	} {
		if n == 0 {
			t.Errorf("%s: none", what)
		}
	}
	if want := r.Uploads.Put + r.Uploads.Overwritten + r.Uploads.Removed - r.Notifications.Dropped + r.Notifications.Doubled; r.Notifications.Sent != want {
		t.Errorf("sent %d, want %d", r.Notifications.Sent, want)
	}
	if r.Workers.Started != 3 {
		t.Errorf("%d workers were started, want 3", r.Workers.Started)
	}
}

// outputCorrupter adds a wrong output just before the comparison.
type outputCorrupter struct {
	bytes.Buffer
	do sync.Once
}

var storeURLPattern = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

func (s *outputCorrupter) Write(b []byte) (int, error) {
	n, err := s.Buffer.Write(b)
	if bytes.Contains(b, []byte("an audit of the bucket repaired")) {
		s.do.Do(func() {
			err = put(storeURLPattern.FindString(s.String())+"/photos-out/gray/extra.png", []byte("not a picture"))
		})
	}
	return n, err
}

func put(url string, body []byte) error {
	req, err := http.NewRequest(http.MethodPut, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return errors.New(res.Status)
	}
	return nil
}

func TestWrongOutput(t *testing.T) {
	t.Parallel()
	var out outputCorrupter
	var report *demo.PipelineReport
	err := demo.Run(t.Context(), demo.Options{
		Seed: 5, Binary: binary, Once: true, Out: &out,
		Report: func(r demo.Report) error { report = r.(*demo.PipelineReport); return r.Print(&out) },
	})
	if !errors.Is(err, demo.ErrWrong) || !strings.Contains(err.Error(), "s3://photos-out/gray/extra.png has no input") {
		t.Errorf("got %v\n%s", err, &out)
	}
	if report == nil || report.OK || len(report.Outputs.Wrong) != 1 || !strings.Contains(out.String(), "Some checks failed") {
		t.Errorf("the report is %+v", report)
	}
	_, folder, ok := strings.Cut(fmt.Sprint(err), "logs, ledger and configuration are in ")
	if !ok {
		t.Fatalf("the error does not name the folder: %v", err)
	}
	defer os.RemoveAll(folder)
	if kept, err := filepath.Glob(filepath.Join(folder, "worker-*.log")); err != nil || len(kept) != 3 {
		t.Errorf("the logs kept are %q (%v)", kept, err)
	}
}

// Workers that exit during their start end the demo with the end of their log.
func TestCannotStart(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	broken := filepath.Join(t.TempDir(), "pawl")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\necho no such luck >&2\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	err := demo.Run(t.Context(), demo.Options{Binary: broken, Once: true, Out: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "no such luck") || !strings.Contains(err.Error(), "logs, ledger and configuration are in") {
		t.Errorf("got %v", err)
	}
}

func TestCannotListen(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for listen, want := range map[string]string{
		"0.0.0.0:0": "use 127.0.0.1", "nowhere": "want host:port", taken.Addr().String(): "choose another address with --listen",
	} {
		err := demo.Run(t.Context(), demo.Options{Binary: binary, Listen: listen, Out: io.Discard})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("listening on %s: got %v", listen, err)
		}
	}
	if !empty(t, tmp) {
		t.Error("the demo left its folder behind")
	}
}

func TestInterrupted(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := watcher{text: "are drawn", then: cancel}
	if err := demo.Run(ctx, demo.Options{Binary: binary, Once: true, Out: &out}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if !empty(t, tmp) {
		t.Error("the demo left its folder behind")
	}
}

// watcher calls a function when a text is written.
type watcher struct {
	bytes.Buffer
	text string
	then func()
}

func (w *watcher) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(w.text)) {
		w.then()
	}
	return w.Buffer.Write(b)
}

func empty(t *testing.T, dir string) bool {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(left) == 0
}
