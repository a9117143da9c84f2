package demo_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/cmd/pawl/demo"
)

func TestFilesOnce(t *testing.T) {
	for _, seed := range []string{"1", "20260212"} {
		t.Run(seed, func(t *testing.T) {
			t.Parallel()
			tmp := t.TempDir()
			var stderr bytes.Buffer
			cmd := exec.CommandContext(t.Context(), binary, "files", "demo", "--once", "--json", "--seed", seed)
			cmd.Env, cmd.Stderr = append(os.Environ(), "TMPDIR="+tmp), &stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s\n%s", err, out, &stderr)
			}
			var r demo.FilesReport
			if err := json.Unmarshal(out, &r); err != nil {
				t.Fatalf("%v in %s", err, out)
			}
			t.Logf("%s", out)
			if !r.OK || r.Files.Right == 0 || r.Files.Right != r.Files.Of || r.Services.Started < 4 {
				t.Errorf("a check failed: %+v", r)
			}
			for what, n := range map[string]int{
				"refused": r.Uploads.Refused, "broken off": r.Uploads.BrokenOff, "repeated": r.Uploads.Repeated,
				"deleted": r.Uploads.Deleted, "undeleted": r.Uploads.Undeleted, "doubled": r.Notifications.Doubled,
				"delayed": r.Notifications.Delayed, "dropped": r.Notifications.Dropped, "killed": r.Services.Killed,
				"completed": r.Healed.Complete, "audited": r.Healed.Audit, "visible": r.Files.Visible,
				"gone": r.Files.Gone, "expired": r.Files.Expired,
			} {
				if n == 0 {
					t.Errorf("%s: none", what)
				}
			}
			if !empty(t, tmp) {
				t.Error("the demo left its folder behind")
			}
		})
	}
}

func TestFilesWrong(t *testing.T) {
	t.Parallel()
	var report *demo.FilesReport
	out := &watcher{text: "an audit finds"}
	out.then = func() {
		if err := put(storeURLPattern.FindString(out.String())+"/uploads/files/extra", []byte("x")); err != nil {
			t.Error(err)
		}
	}
	err := demo.RunFiles(t.Context(), demo.Options{
		Seed: 3, Binary: binary, Once: true, Out: out, Report: func(r demo.Report) error { report = r.(*demo.FilesReport); return r.Print(out) },
	})
	if !errors.Is(err, demo.ErrWrong) || report == nil || report.OK || len(report.Files.Wrong) != 2 || !strings.Contains(out.String(), "Some checks failed") {
		t.Errorf("got %v\n%s", err, out)
	}
	_, folder, ok := strings.Cut(fmt.Sprint(err), "logs, index and configuration are in ")
	if !ok {
		t.Fatalf("the error does not name the folder: %v", err)
	}
	if err := os.RemoveAll(folder); err != nil {
		t.Error(err)
	}
}
