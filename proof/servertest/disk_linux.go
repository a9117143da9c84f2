package servertest

import (
	"context"
	"fmt"
	"os/exec"
	"testing"
)

// OnDisk returns a command that sees a folder as a separate disk of a size like 4m. Other processes
// find the disk below /proc/<pid>/root. It needs user namespaces.
func OnDisk(ctx context.Context, t testing.TB, dir, size string, command ...string) *exec.Cmd {
	t.Helper()
	wrap := func(command ...string) *exec.Cmd {
		script := `mount -t tmpfs -o size=` + size + ` none "$0" && exec "$@"`
		return exec.CommandContext(ctx, "unshare", append([]string{"--map-root-user", "--mount", "sh", "-c", script, dir}, command...)...)
	}
	if out, err := wrap("true").CombinedOutput(); err != nil {
		require(t, fmt.Errorf("this machine cannot give a command its own disk: %w: %s", err, out))
	}
	return wrap(command...)
}
