package servertest

import (
	"os/exec"
	"testing"

	"github.com/pawlhq/pawl/internal/toolcache"
)

// Promtool runs Prometheus' promtool, and fails the test if it fails.
func Promtool(t testing.TB, args ...string) {
	t.Helper()
	Long(t)
	program, err := toolcache.FindPromtool()
	require(t, err)
	if out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %v: %v\n%s", args, err, out)
	}
}
