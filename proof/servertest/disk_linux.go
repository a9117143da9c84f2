package servertest

import (
	"context"
	"fmt"
	"os/exec"
	"testing"
)

// OnDisk returns a command that sees a folder as a disk of its own of this size, like
// 4m, as long as it runs. Others find it below /proc/<its pid>/root. That takes no
// privileges where users may have namespaces.
func OnDisk(ctx context.Context, t testing.TB, dir, size string, command ...string) *exec.Cmd {
	t.Helper()
	wrap := func(command ...string) *exec.Cmd {
		script := `mount -t tmpfs -o size=` + size + ` none "$0" && exec "$@"`
		return exec.CommandContext(ctx, "unshare", append([]string{"--map-root-user", "--mount", "sh", "-c", script, dir}, command...)...)
	}
	if out, err := wrap("true").CombinedOutput(); err != nil {
		require(t, fmt.Errorf("a command cannot have a disk of its own here: %w: %s", err, out))
	}
	return wrap(command...)
}
