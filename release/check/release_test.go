package check

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/internal/toolcache"
)

// trial is the version of the release that the tests build.
const trial = "0.1.0"

// root is the repository, and dist the output of release/release.sh in a clone of the last commit.
var root, dist string

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	var err error
	if root, err = toolcache.Root(); err != nil {
		log.Print(err)
		return 1
	}
	dir, err := os.MkdirTemp("", "pawl-release-")
	if err == nil {
		defer os.RemoveAll(dir)
		dist, err = buildRelease(context.Background(), filepath.Join(dir, "first"))
	}
	if err != nil {
		log.Print(err)
		return 1
	}
	return m.Run()
}

// buildRelease builds a release of the last commit in a new clone, and returns its folder dist.
func buildRelease(ctx context.Context, clone string) (string, error) {
	for _, args := range [][]string{{"git", "clone", "-q", root, clone}, {filepath.Join(clone, "release", "release.sh")}} {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Env = append(os.Environ(), "VERSION="+trial)
		if said, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s: %w\n%s", args, err, said)
		}
	}
	return filepath.Join(clone, "dist"), nil
}

// output runs a command and returns what it printed.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	said, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, said)
	}
	return string(said)
}

func TestVersionOfTheBinary(t *testing.T) {
	var got struct{ Version, Go, Revision string }
	said := output(t, filepath.Join(dist, "bin", "linux_"+runtime.GOARCH, "pawl"), "version", "--json")
	if err := json.Unmarshal([]byte(said), &got); err != nil {
		t.Fatal(err)
	}
	commit := strings.TrimSpace(output(t, "git", "-C", root, "rev-parse", "HEAD"))
	if got.Version != "v"+trial || got.Go != runtime.Version() || got.Revision != commit {
		t.Errorf("version = %+v, want v%s, %s, %s", got, trial, runtime.Version(), commit)
	}
}
