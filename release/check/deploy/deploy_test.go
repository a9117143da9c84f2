// Package deploy checks the Helm chart and the workflows with the programs that read them.
package deploy

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/pawlhq/pawl/cmd/pawl/parts"
	"github.com/pawlhq/pawl/internal/toolcache"
	"github.com/pawlhq/pawl/proof/servertest"
)

var update = flag.Bool("update", false, "write the golden files")

const chart = "deploy/helm/pawl"

// Chart.yaml requires the first version.
var kubernetes = []string{"1.33.0", "1.35.0", "1.37.0"}

// install changes to the root of the repository, and returns the path of a tool.
func install(t *testing.T, tool toolcache.Tool) string {
	t.Helper()
	root, err := toolcache.Root()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(root)
	path, err := tool.Build(t.Context(), root, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	var failure strings.Builder
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, &failure)
	}
	return string(out)
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestChart(t *testing.T) {
	helm, python := install(t, toolcache.Helm), filepath.Join(install(t, toolcache.KubernetesValidate), "bin", "python")
	if err := toolcache.BuildPrometheus(t.Context(), os.Stderr); err != nil {
		t.Fatal(err)
	}
	all, err := filepath.Glob("deploy/helm/testdata/*.yaml")
	if err != nil || len(all) < 4 {
		t.Fatalf("%v, %v", all, err)
	}
	for i, m := range regexp.MustCompile("(?s)```yml\n(.*?)```").FindAllStringSubmatch(read(t, "docs/KUBERNETES.md"), -1) {
		all = append(all, write(t, filepath.Join(t.TempDir(), "docs"+strconv.Itoa(i)), m[1]))
	}
	var custom string // of all files
	for _, values := range all {
		t.Run(filepath.Base(values), func(t *testing.T) {
			output(t, helm, "lint", "--strict", chart, "-f", values)
			var resources string
			var rules any
			for _, version := range kubernetes {
				var standard string
				standard, resources, rules = split(t, output(t, helm, "template", "photos", chart, "-f", values, "--kube-version", version))
				output(t, python, "-m", "kubernetes_validate", "--strict", "-k", version, write(t, filepath.Join(t.TempDir(), "standard.yaml"), standard))
			}
			custom += resources
			if rules != nil {
				checkRules(t, rules)
			}
		})
	}
	const golden = "deploy/helm/testdata/custom.golden"
	if *update {
		write(t, golden, custom)
	}
	if want := read(t, golden); custom != want {
		t.Errorf("custom resources:\n%s\nwant\n%s", custom, want)
	}
}

// split separates the objects. It checks the configurations.
func split(t *testing.T, text string) (standard, custom string, rules any) {
	t.Helper()
	for _, doc := range strings.Split(text, "---\n")[1:] {
		var o struct {
			Kind string
			Data map[string]string
			Spec any
		}
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			t.Fatal(err)
		}
		switch o.Kind {
		case "PrometheusRule":
			rules = o.Spec
			continue
		case "ServiceMonitor":
			custom += "---\n" + doc
			continue
		case "ConfigMap":
			variable := func(string) (string, bool) { return "postgres://pawl@127.0.0.1/a-long-secret", true }
			c, err := parts.Table.Load(write(t, filepath.Join(t.TempDir(), "pawl.yaml"), o.Data["pawl.yaml"]), variable)
			if err != nil {
				t.Error(err)
			} else if c.Files != nil && c.Files.Listen != ":8090" {
				t.Errorf("files.listen is %s, but the Service sends requests to port 8090", c.Files.Listen)
			}
		}
		standard += "---\n" + doc
	}
	return standard, custom, rules
}

// checkRules runs the tests of deploy/prometheus on the rules of the chart.
func checkRules(t *testing.T, spec any) {
	t.Helper()
	text, err := yaml.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	servertest.Promtool(t, "check", "rules", "--lint-fatal", write(t, filepath.Join(dir, "rules.yml"), string(text)))
	servertest.Promtool(t, "test", "rules", write(t, filepath.Join(dir, "rules_test.yml"), read(t, "deploy/prometheus/rules_test.yml")))
}

func TestChartRefuses(t *testing.T) {
	helm := install(t, toolcache.Helm)
	for want, flags := range map[string]string{
		"set workers.config, files.config or archive.config": "",
		"set ledgerSecret.name, or a ledger in each config":  "workers.config.concurrency=1",
		"workers.config.ledger: pods share no disk":          "workers.config.ledger=sqlite:pawl.db",
		"files.config.files.index: pods share no disk":       "files.config.files.index=files.db",
		"set files.ingress.tlsSecret":                        "archive.config.ledger=dynamodb://pawl,files.ingress.enabled=true,files.ingress.host=files.example.com",
		"additional properties 'replica' not allowed":        "workers.config.ledger=dynamodb://pawl,workers.replica=1",
	} {
		said, err := exec.CommandContext(t.Context(), helm, "template", "photos", chart, "--kube-version", kubernetes[0], "--set", flags).CombinedOutput()
		if err == nil || !strings.Contains(string(said), want) {
			t.Errorf("helm template --set %s: %v, want %q\n%s", flags, err, want, said)
		}
	}
}

// docs/FILES.md has the rules for a proxy in front of the store.
func TestStoreProxy(t *testing.T) {
	const docs = "../../../docs/FILES.md"
	rules := read(t, filepath.Join("../../..", chart, "store-proxy.conf"))
	lines := regexp.MustCompile(`(?m)^ *((?:proxy_headers_hash|proxy_set_header X-Minio-|add_header |if \(\$).*)$`).FindAllStringSubmatch(read(t, docs), -1)
	if len(lines) != 10 {
		t.Errorf("%s has %d rules, want 10", docs, len(lines))
	}
	for _, line := range lines {
		if !strings.Contains(rules, line[1]+"\n") {
			t.Errorf("store-proxy.conf lacks %s", line[1])
		}
	}
}

var (
	action = regexp.MustCompile(`(?m)^ *(?:- )?uses: (.*)$`)
	pinned = regexp.MustCompile(`^(\./.*|[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+)$`)
)

func TestWorkflows(t *testing.T) {
	output(t, install(t, toolcache.Actionlint))
	all, err := filepath.Glob(".github/workflows/*.yml")
	if err != nil || len(all) == 0 {
		t.Fatalf("%v, %v", all, err)
	}
	for _, name := range all {
		text := read(t, name)
		if !strings.Contains(text, "\npermissions: {contents: read}\n") {
			t.Errorf("%s has other permissions than contents: read", name)
		}
		for _, m := range action.FindAllStringSubmatch(text, -1) {
			if !pinned.MatchString(m[1]) {
				t.Errorf("%s: %s is not pinned by digest and version", name, m[1])
			}
		}
	}
}
