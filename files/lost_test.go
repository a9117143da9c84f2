package files_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/files"
)

func TestLostFileIsCheckedAgain(t *testing.T) {
	x := newAuditedService(t)
	f := x.uploadUnnoticed()
	reconcile := func(want files.State) {
		t.Helper()
		if got, err := x.Reconcile(t.Context(), f.ID, false); err != nil || got.State != want {
			t.Fatalf("%s, %v: want it %s", got.State, err, want)
		}
	}
	sweep := func(later time.Duration, want int) {
		t.Helper()
		x.Now = func() time.Time { return time.Now().Add(later) }
		if n, err := (&files.Sweeper{Service: x.Service}).Round(t.Context()); err != nil || n != want {
			t.Errorf("%d reconciled, %v: want %d", n, err, want)
		}
		x.Now = nil
	}
	remove := func() {
		t.Helper()
		if err := x.Objects.Remove(t.Context(), f.Key); err != nil {
			t.Fatal(err)
		}
	}
	reconcile(files.Indexed)
	remove()
	var log bytes.Buffer
	x.Logger = slog.New(slog.NewTextHandler(&log, nil))
	reconcile(files.Lost)
	for _, want := range []string{"level=WARN", f.ID, "key=" + f.Key, "from=indexed to=lost", `promised="5 bytes, SHA-256 2cf24dba`, "found=nothing"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%s\nwant %s", &log, want)
		}
	}
	log.Reset()
	x.put(&f, "hello")
	sweep(2*time.Minute, 1)
	reconcile(files.Indexed)
	if log.Len() > 0 {
		t.Errorf("%s\nwant nothing", &log)
	}
	remove()
	x.put(&f, "something else")
	x.wantAudit(files.AuditOptions{}, files.AuditReport{Objects: 1, Rows: 1, Moved: map[string]int64{"lost": 1}})
	if strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), `found="14 bytes, SHA-256`) {
		t.Errorf("%s\nwant one line, of 14 bytes", &log)
	}
	sweep(2*time.Minute, 1)
	sweep(time.Hour, 0)
	reconcile(files.Lost)
}
