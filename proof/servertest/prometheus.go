package servertest

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"testing"

	"github.com/pawlhq/pawl/internal/toolcache"
)

// Promtool runs Prometheus' promtool, and fails the test if it fails.
func Promtool(t testing.TB, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), prometheus(t, "promtool"), args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %v: %v\n%s", args, err, out)
	}
}

// Prometheus starts a Prometheus server with a configuration file, and returns its URL.
func Prometheus(t testing.TB, config string) (url string) {
	t.Helper()
	program, dir := prometheus(t, "prometheus"), t.TempDir()
	start(t, "Prometheus", func(addr string) *exec.Cmd {
		url = "http://" + addr
		cmd := exec.Command(program, "--config.file="+config, "--storage.tsdb.path="+dir, "--web.listen-address="+addr, "--log.level=warn")
		cmd.Env = environment(dir)
		return cmd
	}, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/-/ready", nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		if _ = resp.Body.Close(); resp.StatusCode != http.StatusOK {
			return fmt.Errorf("prometheus is not ready: %s", resp.Status)
		}
		return nil
	})
	return url
}

func prometheus(t testing.TB, program string) string {
	t.Helper()
	Long(t)
	path, err := toolcache.FindPrometheus(program)
	require(t, err)
	return path
}
