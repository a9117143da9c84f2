//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlhq/pawl/audit"
	"github.com/pawlhq/pawl/proof/servertest"
)

const brakeConfig = `
ledger: sqlite:%s
objects: {endpoint: "${PAWL_ENDPOINT}", region: us-east-1, path_style: true}
pipelines:
  - name: mirror
    match: {bucket: inputs}
    copy: {to: s3://outputs/}
sweep_interval: 100ms
audit: {every: 1s, settle_window: 1ns}
`

const brakeObjects = 300

// No output is removed without --allow-removals, and other losses are repaired.
func TestAuditBrake(t *testing.T) {
	t.Parallel()
	w := newBrakeTest(t)
	for i := range brakeObjects {
		w.put(t, fmt.Sprintf("%04d", i), "content")
	}
	if got := w.audit(t, w.server); got.LostCreations != brakeObjects {
		t.Fatalf("the first audit: %+v", got)
	}
	w.run(t, "", brakeObjects)

	elsewhere := servertest.S3(t)
	newTestBuckets(t, elsewhere)
	if got := w.audit(t, elsewhere); got.Withheld != brakeObjects || got.LostRemovals != 0 {
		t.Errorf("an audit of another endpoint: %+v", got)
	}
	w.run(t, "no losses", brakeObjects)

	for i := range brakeObjects {
		w.remove(t, fmt.Sprintf("%04d", i))
	}
	w.put(t, "new", "content")
	w.run(t, "scheduled 0 removals and withheld", brakeObjects+1)
	if got := w.audit(t, w.server); got.Withheld != brakeObjects || got.LostRemovals != 0 {
		t.Errorf("an audit of the emptied bucket: %+v", got)
	}
	if got := w.audit(t, w.server, "--allow-removals"); got.Withheld != 0 || got.LostRemovals != brakeObjects {
		t.Errorf("an audit with --allow-removals: %+v", got)
	}
	w.run(t, "", 1)
}

type brakeTest struct {
	*testBuckets
	server         *servertest.Server
	binary, config string
}

func newBrakeTest(t *testing.T) *brakeTest {
	t.Helper()
	dir := t.TempDir()
	s := servertest.S3(t)
	w := &brakeTest{testBuckets: newTestBuckets(t, s), server: s, binary: build(t), config: filepath.Join(dir, "pawl.yaml")}
	if err := os.WriteFile(w.config, fmt.Appendf(nil, brakeConfig, filepath.Join(dir, "ledger.db")), 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *brakeTest) command(ctx context.Context, s *servertest.Server, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, w.binary, append(args, "-c", w.config)...)
	cmd.Env = append(os.Environ(), "PAWL_ENDPOINT="+s.Endpoint, "AWS_ACCESS_KEY_ID="+s.AccessKey, "AWS_SECRET_ACCESS_KEY="+s.SecretKey)
	return cmd
}

func (w *brakeTest) audit(t *testing.T, s *servertest.Server, flags ...string) audit.Counts {
	t.Helper()
	out, err := w.command(t.Context(), s, append([]string{"audit", "--json", "--settle-window", "1ns"}, flags...)...).Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Fatalf("pawl audit: %v, want exit code 3: %s", err, out)
	}
	var report struct{ Total audit.Counts }
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatal(err)
	}
	return report.Total
}

// The worker also audits on a schedule.
func (w *brakeTest) run(t *testing.T, text string, want int) {
	t.Helper()
	log, err := os.Create(w.config + ".log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := w.command(t.Context(), w.server, "run")
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, func(ctx context.Context) (bad []string, err error) {
		if said, err := os.ReadFile(log.Name()); err != nil || !strings.Contains(string(said), text) {
			bad = append(bad, fmt.Sprintf("the log does not contain %q", text))
		}
		n := 0
		for _, err := range w.store.List(ctx, outputs, "", "") {
			if err != nil {
				return nil, err
			}
			n++
		}
		if n != want {
			bad = append(bad, fmt.Sprintf("there are %d outputs, want %d", n, want))
		}
		return bad, nil
	})
	if err := errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()); err != nil {
		t.Errorf("pawl run: %v", err)
	}
}
