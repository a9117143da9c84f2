package toolcache

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestRootIsTheRepository(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "internal", "toolcache", "toolcache.go")); err != nil {
		t.Errorf("Root() = %s, which is not the repository: %v", root, err)
	}
}

func TestRootOutside(t *testing.T) {
	t.Chdir(t.TempDir())
	if root, err := Root(); err == nil {
		t.Errorf("Root() outside the repository = %s, want an error", root)
	}
}

func TestEveryToolIsPinned(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range []Tool{MinIO, VersityGW, ElasticMQ, DynamoDBLocal, Kinesalite, KinesisLocal, GolangCI, Gremlins, Bento, Restate, Chromium, AWSTools, Schemathesis, Helm, Actionlint, KubernetesValidate, Hugo} {
		file, named := "go.mod", tool.Package+"\n"
		switch {
		case tool.Java:
			file, named = "pom.xml", "<artifactId>"+map[string]string{ElasticMQ.Name: "elasticmq-server_", DynamoDBLocal.Name: "DynamoDBLocal<"}[tool.Name]
		case tool.Node:
			at := strings.LastIndex(tool.Package, "@")
			file, named = "package.json", `"`+tool.Package[:at]+`": "`+tool.Package[at+1:]+`"`
		case tool.Python:
			file = "requirements.txt"
		}
		mod, err := os.ReadFile(filepath.Join(tool.dir(root), file))
		if err != nil {
			t.Error(err)
			continue
		}
		if !strings.Contains(string(mod), named) {
			t.Errorf("tools/%s/%s does not name the tool %s", tool.Module, file, tool.Package)
		}
	}
}

func TestDirWithoutHome(t *testing.T) {
	for _, name := range []string{"HOME", "XDG_CACHE_HOME", "LocalAppData"} {
		t.Setenv(name, "")
	}
	if got := Dir(); !strings.HasPrefix(got, os.TempDir()) {
		t.Errorf("Dir() without a home = %s, want it below %s", got, os.TempDir())
	}
}

func hello(t *testing.T, source string) (string, Tool) {
	t.Helper()
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOCACHE", strings.TrimSpace(string(cache)))
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	root := t.TempDir()
	dir := filepath.Join(root, "tools", "hello")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"go.mod": "module example.test/hello\n\ngo 1.26\n", "go.sum": "", "main.go": source,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root, Tool{Name: "hello", Module: "hello", Package: "example.test/hello", BuildTime: "a moment"}
}

func TestBuildOnce(t *testing.T) {
	root, tool := hello(t, "package main\n\nfunc main() {}\n")
	var log bytes.Buffer
	path, err := tool.Build(t.Context(), root, &log)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "building hello once") {
		t.Errorf("log = %q, want the name of the tool", &log)
	}
	log.Reset()
	again, err := tool.Build(t.Context(), root, &log)
	if err != nil || again != path || log.Len() != 0 {
		t.Errorf("second Build = %s, %v, logging %q; want %s and no log", again, err, &log, path)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if err != nil || len(left) != 1 {
		t.Errorf("the cache holds %v (%v), want only the binary", left, err)
	}
}

func TestBuildFails(t *testing.T) {
	root, tool := hello(t, "package main\n\nfunc main() { nonsense }\n")
	var log bytes.Buffer
	if _, err := tool.Build(t.Context(), root, &log); err == nil || !strings.Contains(err.Error(), "undefined: nonsense") {
		t.Errorf("Build of invalid source = %v, want the compiler's output", err)
	}
	path, err := tool.Path(root)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("a failed build left %s (%v)", path, err)
	}
}

func TestPathFollowsThePin(t *testing.T) {
	root, tool := hello(t, "")
	before, err := tool.Path(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tool.dir(root), "go.sum"), []byte("x v1.0.0 h1:x=\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	after, err := tool.Path(root)
	if err != nil || before == after {
		t.Errorf("Path before %s and after %s (%v) a changed go.sum: want different ones", before, after, err)
	}
}

func TestNodeIsMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := Kinesalite.Find(); !errors.Is(err, ErrNoNode) {
		t.Errorf("without node: %v", err)
	}
}

func TestJavaIsMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var log bytes.Buffer
	_, found := ElasticMQ.Find()
	_, built := ElasticMQ.Build(t.Context(), t.TempDir(), &log)
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	_, here := ElasticMQ.Build(t.Context(), root, &log)
	if !errors.Is(found, ErrNoJava) || errors.Is(built, ErrNoJava) || !errors.Is(here, ErrNoJava) || MinIO.Missing() != nil {
		t.Errorf("without java: %v, %v, %v", found, built, here)
	}
}

func TestPrometheusIsMissing(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("PATH", t.TempDir())
	_, found := FindPrometheus("promtool")
	built := BuildPrometheus(t.Context(), os.Stderr)
	if !errors.Is(found, ErrNoPrometheus) || !errors.Is(built, ErrNoPrometheus) || !IsMissingRuntime(built) {
		t.Errorf("without apt-get: %v, %v", found, built)
	}
}
