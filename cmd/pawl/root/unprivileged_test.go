//go:build unix

package root_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

const unprivilegedUID = 65534

// asUnprivileged CODE pawl ARG...: like exits, but never as root, because file modes do not restrict
// root.
func asUnprivileged(ts *testscript.TestScript, _ bool, args []string) {
	if os.Geteuid() != 0 {
		exits(ts, false, args)
		return
	}
	work := ts.Getenv("WORK")
	ts.Check(os.Chmod(filepath.Dir(work), 0o755))
	ts.Check(os.Chmod(work, 0o755))
	self, err := os.Executable()
	ts.Check(err)
	program, err := os.ReadFile(self)
	ts.Check(err)
	path := filepath.Join(work, "pawl-of-nobody")
	ts.Check(os.WriteFile(path, program, 0o755))

	cmd := exec.Command(path)
	cmd.Args = args[1:] // the test binary selects a command by its name
	cmd.Dir, cmd.Stdout, cmd.Stderr = work, ts.Stdout(), ts.Stderr()
	for _, name := range []string{"PATH", "S3", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_EC2_METADATA_DISABLED"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: unprivilegedUID, Gid: unprivilegedUID}}
	err = cmd.Run()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || strconv.Itoa(exit.ExitCode()) != args[0] {
		ts.Fatalf("%v, want exit code %s", err, args[0])
	}
}
