package check

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/toolcache"
)

// trial is the version of the release that the tests build.
const trial = "0.1.0"

// root is the repository. clones has two clones of its last commit, and dist is the output of release/release.sh in the
// first.
var root, clones, dist string

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	var err error
	if root, err = toolcache.Root(); err != nil {
		log.Print(err)
		return 1
	}
	if clones, err = os.MkdirTemp("", "pawl-release-"); err == nil {
		defer os.RemoveAll(clones)
		dist, err = buildRelease(context.Background(), "first")
	}
	if err != nil {
		log.Print(err)
		return 1
	}
	return m.Run()
}

// buildRelease builds a release of the last commit in a new clone, and returns its folder dist.
func buildRelease(ctx context.Context, name string) (string, error) {
	clone := filepath.Join(clones, name)
	for _, args := range [][]string{{"git", "clone", "-q", root, clone}, {filepath.Join(clone, "release", "release.sh")}} {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Env = append(os.Environ(), "VERSION="+trial)
		if said, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s: %w\n%s", args, err, said)
		}
	}
	return filepath.Join(clone, "dist"), nil
}

func wantAll(t *testing.T, said string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(said, want) {
			t.Errorf("the output lacks %q:\n%s", want, said)
		}
	}
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

func pawl() string { return filepath.Join(dist, "bin", "linux_"+runtime.GOARCH, "pawl") }

func TestVersionAndStartup(t *testing.T) {
	var said string
	var times []time.Duration
	for range 20 {
		start := time.Now()
		said = output(t, pawl(), "version")
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	t.Logf("pawl version takes %v (median of 20)", times[10])
	commit := strings.TrimSpace(output(t, "git", "-C", root, "rev-parse", "HEAD"))
	wantAll(t, said, "pawl v"+trial+", "+runtime.Version(), commit, "rows       writes ")
}

func TestTwoBuildsAreEqual(t *testing.T) {
	second, err := buildRelease(t.Context(), "second")
	if err != nil {
		t.Fatal(err)
	}
	want, got := output(t, "cat", filepath.Join(dist, "release", "SHA256SUMS")), output(t, "cat", filepath.Join(second, "release", "SHA256SUMS"))
	if want != got {
		t.Errorf("checksums of the first build:\n%sof the second:\n%s", want, got)
	}
	t.Log("\n" + got)
}

var dependency = regexp.MustCompile(`(?m)^\t(?:dep|=>)\t(\S+)\t(\S+)`)

func TestSBOM(t *testing.T) {
	binaries, err := filepath.Glob(filepath.Join(dist, "bin", "*", "pawl*"))
	if err != nil || len(binaries) != 6 {
		t.Fatalf("binaries: %v, %v; want 6", binaries, err)
	}
	for _, binary := range binaries {
		sbom := output(t, "cat", filepath.Join(dist, "release", "pawl_"+trial+"_"+filepath.Base(filepath.Dir(binary))+".sbom.json"))
		modules := dependency.FindAllStringSubmatch(output(t, "go", "version", "-m", binary), -1)
		for _, m := range modules {
			if !strings.Contains(sbom, "pkg:golang/"+m[1]+"@"+m[2]+"?") {
				t.Errorf("the SBOM of %s lacks %s %s", binary, m[1], m[2])
			}
		}
		info, err := os.Stat(binary)
		if err != nil || len(modules) == 0 {
			t.Fatal(err, len(modules))
		}
		t.Logf("%s: %.1f MB, %d modules", filepath.Base(filepath.Dir(binary)), float64(info.Size())/1e6, len(modules))
	}
}

// TestRootOnly measures a program that imports only Pawl's root package, and checks the figures of docs/LIBRARY.md.
func TestRootOnly(t *testing.T) {
	dir := filepath.Join(clones, "first", "cmd", "rootonly")
	const source = "package main\n\nimport (\n\"context\"\n\n\"github.com/pawlhq/pawl\"\n)\n\nfunc main() {\n" +
		"p, err := pawl.New(pawl.Config{})\nif err == nil {\nerr = p.Run(context.Background())\n}\nprintln(err)\n}\n"
	if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o644)); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(t.TempDir(), "rootonly")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", binary, ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	modules := len(dependency.FindAllString(output(t, "go", "version", "-m", binary), -1))
	info, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	figures := fmt.Sprintf("%d MB, with %d other modules", (info.Size()+500_000)/1_000_000, modules)
	t.Log(figures)
	if page := strings.Join(strings.Fields(output(t, "cat", filepath.Join(root, "docs", "LIBRARY.md"))), " "); !strings.Contains(page, figures) {
		t.Errorf("docs/LIBRARY.md lacks %q", figures)
	}
}
