package toolcache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// ErrNoPromtool: promtool is missing, and this system has no apt-get to download it.
var ErrNoPromtool = errors.New("promtool is not installed, and it cannot be downloaded without apt-get and dpkg-deb (it is a part of Prometheus)")

// fetchPromtool runs in an empty folder. It does not need root, because it keeps the lists of packages there.
const fetchPromtool = `set -e
mkdir -p lists/partial cache
apt() { apt-get -q -o Dir::State::Lists="$PWD/lists" -o Dir::Cache="$PWD/cache" -o APT::Sandbox::User="$(id -un)" "$@"; }
apt update
apt download prometheus
dpkg-deb --fsys-tarfile prometheus_*.deb >package.tar
tar -xf package.tar ./usr/bin/promtool`

// FindPromtool returns the path of Prometheus' checker of rules, installed or unpacked by [BuildPromtool].
func FindPromtool() (string, error) {
	if path, err := exec.LookPath("promtool"); err == nil {
		return path, nil
	}
	path := promtoolPath()
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	for _, name := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(name); err != nil {
			return "", ErrNoPromtool
		}
	}
	return "", errors.New("promtool is not installed: install it (Debian: apt-get install prometheus), or run `go run ./tools/test -build` in Pawl's repository once")
}

func promtoolPath() string { return filepath.Join(Dir(), "promtool-linux-"+runtime.GOARCH) }

// BuildPromtool downloads promtool from the system's Debian packages if it is not installed.
func BuildPromtool(ctx context.Context, log io.Writer) error {
	if _, err := FindPromtool(); err == nil || errors.Is(err, ErrNoPromtool) {
		return err
	}
	path := promtoolPath()
	fmt.Fprintf(log, "downloading promtool once, into %s\n", path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("create a folder for promtool: %w", err)
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), "unpacking-")
	if err != nil {
		return fmt.Errorf("create a folder for promtool: %w", err)
	}
	defer os.RemoveAll(dir)
	cmd := exec.CommandContext(ctx, "sh", "-c", fetchPromtool)
	cmd.Dir = dir
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("download promtool: %w\n%s", err, said)
	}
	if err := os.Rename(filepath.Join(dir, "usr", "bin", "promtool"), path); err != nil {
		return fmt.Errorf("move promtool to its folder: %w", err)
	}
	return nil
}
