package deploy_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/metrics/prom"
	"github.com/pawlhq/pawl/proof/servertest"
)

const (
	rulesFile = "prometheus/rules.yml"
	rulesTest = "prometheus/rules_test.yml"
	recorded  = "prometheus/recorded_test.yml" // written by TestAlerts of proof/e2e
	dashboard = "grafana/pawl.json"
	operating = "../docs/OPERATING.md"
	metrics   = "../docs/METRICS.md"
	runbooks  = "https://github.com/pawlhq/pawl/blob/main/docs/OPERATING.md#"
)

func TestPrometheusRules(t *testing.T) {
	servertest.Promtool(t, "check", "rules", "--lint-fatal", rulesFile)
	servertest.Promtool(t, "test", "rules", rulesTest, recorded)
}

// Promtool checks the queries of the dashboard as recording rules.
func TestGrafanaDashboard(t *testing.T) {
	type record struct{ Record, Expr string }
	type group struct {
		Name  string
		Rules []record
	}
	g := group{Name: "dashboard"}
	for i, q := range queries(t) {
		g.Rules = append(g.Rules, record{fmt.Sprintf("query_%d", i), q})
	}
	text, err := yaml.Marshal(map[string][]group{"groups": {g}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "queries.yml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	servertest.Promtool(t, "check", "rules", file)
}

// queries returns the queries of the dashboard, without variables of Grafana.
func queries(t *testing.T) (all []string) {
	t.Helper()
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, dashboard)), &board); err != nil {
		t.Fatal(err)
	}
	for _, p := range board.Panels {
		if len(p.Targets) == 0 {
			t.Errorf("panel %s of %s has no query", p.Title, dashboard)
		}
		for _, q := range p.Targets {
			all = append(all, strings.NewReplacer("$__rate_interval", "5m", "$job", "pawl").Replace(q.Expr))
		}
	}
	return all
}

type rule struct {
	Alert, Record, Expr string
	Annotations         map[string]string
}

func readRules(t *testing.T) (all []rule) {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	if err := yaml.Unmarshal([]byte(read(t, rulesFile)), &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("no rules")
	}
	return all
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var templateLabel = regexp.MustCompile(`\$labels\.(\w+)`)

// The tests of promtool compare all labels of a firing alert, so the texts may use only these labels.
func TestAlertsAreTestedAndDocumented(t *testing.T) {
	tests, page := read(t, rulesTest), read(t, operating)
	for _, r := range readRules(t) {
		if r.Alert == "" {
			continue
		}
		if got, want := r.Annotations["runbook"], runbooks+strings.ToLower(r.Alert); got != want {
			t.Errorf("alert %s has the runbook %q, want %s", r.Alert, got, want)
		}
		if !strings.Contains(page, "\n### "+r.Alert+"\n") {
			t.Errorf("%s has no section %s", operating, r.Alert)
		}
		fires := regexp.MustCompile(`labels: '\{alertname="` + r.Alert + `"([^']*)\}'`).FindStringSubmatch(tests)
		if fires == nil {
			t.Errorf("alert %s never fires in %s", r.Alert, rulesTest)
			continue
		}
		for _, name := range []string{"summary", "description"} {
			text := r.Annotations[name]
			if text == "" {
				t.Errorf("alert %s has no %s", r.Alert, name)
			}
			for _, m := range templateLabel.FindAllStringSubmatch(text, -1) {
				if !strings.Contains(fires[1], " "+m[1]+`="`) && m[1] != "job" {
					t.Errorf("the %s of alert %s uses the label %s, which the alert does not have", name, r.Alert, m[1])
				}
			}
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^### (Pawl\w+)$`).FindAllStringSubmatch(page, -1) {
		if !slices.ContainsFunc(readRules(t), func(r rule) bool { return r.Alert == m[1] }) {
			t.Errorf("%s has a section about %s, which is not an alert", operating, m[1])
		}
	}
}

var (
	metricName = regexp.MustCompile(`[a-z0-9_:]*\bpawl_[a-z0-9_:]+`)
	recordName = regexp.MustCompile(`(?m)record: (\S+)$`)
	selector   = regexp.MustCompile(`([a-z0-9_:]*pawl_[a-z0-9_:]+)\{([^{}]*)\}`)
	matcher    = regexp.MustCompile(`(\w+) *(?:=~|!~|!=|=) *"([^"]*)"`)
	grouping   = regexp.MustCompile(`\b(?:by|on|without|ignoring|group_left|group_right) *\(([^()]*)\)`)
)

// Labels that Prometheus adds.
var targetLabels = []string{"job", "instance"}

// The meanings of metrics list all values of these labels. Other kinds are of losses.
var closed = map[string]bool{"state": true, "result": true, "reason": true}

// The tables of the metrics are the ones of package prom and of the recording rules.
func TestMetricsAndLabelsExist(t *testing.T) {
	series, known, table := prom.Series(), slices.Clone(targetLabels), prom.Documentation()
	for _, labels := range series {
		known = append(known, labels...)
	}
	for _, m := range recordName.FindAllStringSubmatch(read(t, rulesFile), -1) {
		series[m[1]] = known
	}
	texts := map[string]string{dashboard: strings.Join(queries(t), "\n")}
	for _, name := range []string{rulesFile, rulesTest, recorded, operating, metrics} {
		texts[name] = read(t, name)
	}
	for name, text := range texts {
		used := metricName.FindAllString(text, -1)
		if len(used) < 5 {
			t.Errorf("%s names %d metrics", name, len(used))
		}
		for _, metric := range used {
			if _, ok := series[metric]; !ok && !isHistogram(series, metric) {
				t.Errorf("%s names the metric %s, which does not exist", name, metric)
			}
		}
		for _, m := range selector.FindAllStringSubmatch(text, -1) {
			for _, label := range matcher.FindAllStringSubmatch(m[2], -1) {
				if !slices.Contains(series[m[1]], label[1]) && !slices.Contains(targetLabels, label[1]) {
					t.Errorf("%s uses the label %s of %s, which does not exist", name, label[1], m[1])
				}
				if closed[label[1]] && !regexp.MustCompile("(?m)^\\| `"+m[1]+"` .*\\b"+label[2]+"\\b").MatchString(table) {
					t.Errorf("%s uses the value %s of the label %s of %s, which is not documented", name, label[2], label[1], m[1])
				}
			}
		}
		for _, m := range grouping.FindAllStringSubmatch(text, -1) {
			for label := range strings.FieldsFuncSeq(m[1], func(r rune) bool { return strings.ContainsRune(", ", r) }) {
				if !slices.Contains(append(known, "alertstate", "severity"), label) {
					t.Errorf("%s groups by the label %s, which does not exist", name, label)
				}
			}
		}
	}
}

// The service level needs a bucket that ends at 60 seconds.
func TestConvergenceHasTheBoundOfTheServiceLevel(t *testing.T) {
	m := prom.New(prom.Config{Pipelines: []string{"thumbnails"}})
	m.Observe(pawl.Notice{Kind: engine.Committed, Key: ledger.RowKey{Pipeline: "thumbnails"}, Behind: time.Second})
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if !strings.Contains(w.Body.String(), `pawl_convergence_seconds_bucket{pipeline="thumbnails",le="60"} 1`) {
		t.Errorf("no bucket ends at 60 seconds in\n%s", w.Body)
	}
}

func isHistogram(series map[string][]string, metric string) bool {
	_, ok := series[metric+"_bucket"]
	return ok
}
