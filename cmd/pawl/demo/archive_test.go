package demo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/cmd/pawl/demo"
)

func TestArchiveOnce(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), binary, "archive", "demo", "--once", "--json")
	cmd.Env, cmd.Stderr = append(os.Environ(), "TMPDIR="+tmp), &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, &stderr)
	}
	var r demo.ArchiveReport
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	t.Logf("%s", out)
	if !r.OK || r.Records.Put == 0 || r.Records.Once != r.Records.Put || r.Workers.Killed != 1 || r.Workers.Started != 3 ||
		r.LatePut != http.StatusPreconditionFailed || r.Verify.Objects == 0 {
		t.Errorf("a check failed: %+v", r)
	}
	if !empty(t, tmp) {
		t.Error("the demo left its folder behind")
	}
}

var archiveURLPattern = regexp.MustCompile(`listens on (\S+), an object store on (\S+)`)

func TestArchiveWrong(t *testing.T) {
	t.Parallel()
	var report *demo.ArchiveReport
	out := &watcher{text: "arrives now"}
	out.then = func() {
		if err := put(archiveURLPattern.FindStringSubmatch(out.String())[2]+"/lake/clicks/extra", []byte("x")); err != nil {
			t.Error(err)
		}
	}
	err := demo.RunArchive(t.Context(), demo.Options{
		Binary: binary, Once: true, Out: out, Report: func(r demo.Report) error { report = r.(*demo.ArchiveReport); return r.Print(out) },
	})
	if !errors.Is(err, demo.ErrWrong) || report == nil || report.OK || len(report.Verify.Findings) != 1 || !strings.Contains(out.String(), "Some checks failed") {
		t.Errorf("got %v\n%s", err, out)
	}
	_, folder, ok := strings.Cut(fmt.Sprint(err), "logs, ledger and configuration are in ")
	if !ok {
		t.Fatalf("the error does not name the folder: %v", err)
	}
	if err := os.RemoveAll(folder); err != nil {
		t.Error(err)
	}
}

func TestArchiveStayUp(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &watcher{text: "Try it"}
	out.then = func() {
		defer cancel()
		got, err := putRecord(archiveURLPattern.FindStringSubmatch(out.String())[1])
		if err != nil || !strings.Contains(got, "SequenceNumber") {
			t.Errorf("putting a record: %s, %v", got, err)
		}
	}
	err := demo.RunArchive(ctx, demo.Options{Binary: binary, Out: out, Report: func(demo.Report) error { return nil }})
	if err != nil || ctx.Err() == nil {
		t.Errorf("got %v\n%s", err, out)
	}
}

func putRecord(url string) (string, error) {
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(`{"StreamName":"clicks","PartitionKey":"you","Data":"aGVsbG8="}`))
	if err != nil {
		return "", err
	}
	req.Header.Set("X-Amz-Target", "Kinesis_20131202.PutRecord")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return string(body), err
}
