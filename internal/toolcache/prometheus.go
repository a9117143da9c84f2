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

// ErrNoPrometheus: Prometheus is missing, and this system has no apt-get to download it.
var ErrNoPrometheus = errors.New("prometheus and promtool are not installed, and they cannot be downloaded without apt-get and dpkg-deb")

// fetchPrometheus runs in an empty folder. It does not need root, because it keeps the lists of packages there.
const fetchPrometheus = `set -e
mkdir -p lists/partial cache
apt() { apt-get -q -o Dir::State::Lists="$PWD/lists" -o Dir::Cache="$PWD/cache" -o APT::Sandbox::User="$(id -un)" "$@"; }
apt update
apt download prometheus
dpkg-deb --fsys-tarfile prometheus_*.deb >package.tar
tar -xf package.tar ./usr/bin/promtool ./usr/bin/prometheus`

var prometheusPrograms = []string{"promtool", "prometheus"}

// FindPrometheus returns the path of a program of Prometheus, installed or unpacked by [BuildPrometheus]: the server
// prometheus, or promtool, the checker of rules.
func FindPrometheus(program string) (string, error) {
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	path := prometheusPath(program)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	for _, name := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(name); err != nil {
			return "", ErrNoPrometheus
		}
	}
	return "", errors.New(program + " is not installed: install it (Debian: apt-get install prometheus), or run `go run ./tools/test -build` in Pawl's repository once")
}

func prometheusPath(program string) string {
	return filepath.Join(Dir(), program+"-linux-"+runtime.GOARCH)
}

// BuildPrometheus downloads Prometheus from the system's Debian packages if it is not installed.
func BuildPrometheus(ctx context.Context, log io.Writer) error {
	var missing error
	for _, program := range prometheusPrograms {
		if _, err := FindPrometheus(program); err != nil {
			missing = err
		}
	}
	if missing == nil || errors.Is(missing, ErrNoPrometheus) {
		return missing
	}
	fmt.Fprintf(log, "downloading Prometheus once, into %s\n", Dir())
	if err := os.MkdirAll(Dir(), 0o755); err != nil {
		return fmt.Errorf("create a folder for Prometheus: %w", err)
	}
	dir, err := os.MkdirTemp(Dir(), "unpacking-")
	if err != nil {
		return fmt.Errorf("create a folder for Prometheus: %w", err)
	}
	defer os.RemoveAll(dir)
	cmd := exec.CommandContext(ctx, "sh", "-c", fetchPrometheus)
	cmd.Dir = dir
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("download Prometheus: %w\n%s", err, said)
	}
	for _, program := range prometheusPrograms {
		if err := os.Rename(filepath.Join(dir, "usr", "bin", program), prometheusPath(program)); err != nil {
			return fmt.Errorf("move %s to its folder: %w", program, err)
		}
	}
	return nil
}
