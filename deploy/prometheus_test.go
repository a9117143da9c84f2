package deploy_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/pawlhq/pawl/metrics/prom"
	"github.com/pawlhq/pawl/proof/servertest"
)

const (
	rulesFile = "prometheus/rules.yml"
	rulesTest = "prometheus/rules_test.yml"
	operating = "../docs/OPERATING.md"
	metrics   = "../docs/METRICS.md"
	runbooks  = "https://github.com/pawlhq/pawl/blob/main/docs/OPERATING.md#"
)

func TestPrometheusRules(t *testing.T) {
	servertest.Promtool(t, "check", "rules", "--lint-fatal", rulesFile)
	servertest.Promtool(t, "test", "rules", rulesTest)
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
	matcher    = regexp.MustCompile(`(\w+) *(?:=~|!~|!=|=) *"`)
	grouping   = regexp.MustCompile(`\b(?:by|on|without|ignoring|group_left|group_right) *\(([^()]*)\)`)
)

// Labels that Prometheus adds.
var targetLabels = []string{"job", "instance"}

// The tables of the metrics are the ones of package prom and of the recording rules.
func TestMetricsAndLabelsExist(t *testing.T) {
	series, known := prom.Series(), slices.Clone(targetLabels)
	for _, labels := range series {
		known = append(known, labels...)
	}
	for _, m := range recordName.FindAllStringSubmatch(read(t, rulesFile), -1) {
		series[m[1]] = known
	}
	texts := map[string]string{}
	for _, name := range []string{rulesFile, rulesTest, operating, metrics} {
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

func isHistogram(series map[string][]string, metric string) bool {
	_, ok := series[metric+"_bucket"]
	return ok
}
