package e2e

import (
	"fmt"
	"maps"
	"math"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const recordedHead = `# Series of real faults, one sample per minute of the rules. TestAlerts in proof/e2e writes this file with -update.
rule_files: [rules.yml]
evaluation_interval: 1m
group_eval_order: [pawl-recording, pawl-processes, pawl-objects, pawl-ledger, pawl-sources-and-audits, pawl-archives, pawl-files]
tests:
`

func writeRecorded(t *testing.T, all []*faulty) {
	t.Helper()
	if len(all) < len(faults) || slices.ContainsFunc(all, func(f *faulty) bool { return f.times == nil }) {
		t.Fatalf("%s would lose the series of the faults that were not played: play all, with -alertscale 4 and without a subtest in -run", recordedFile)
	}
	var b strings.Builder
	b.WriteString(recordedHead)
	for _, f := range all {
		f.format(t, &b)
	}
	if err := os.WriteFile(recordedFile, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// format writes a test of promtool with the series that the alerts read.
func (f *faulty) format(t *testing.T, b *strings.Builder) {
	t.Helper()
	minute := func(at time.Time) int { return int(at.Sub(f.times.began) / scaled(time.Minute)) }
	names := []string{"up"}
	for alert := range f.alerts {
		names = append(names, f.usedSeries(f.rules[alert].Expr)...)
	}
	found, err := f.query(t.Context(), "query_range", fmt.Sprintf(`{__name__=~%q, job=~"JOB|", le=~"|1|1.0|2.5|10|10.0|60|60.0|[+]Inf"}`, strings.Join(names, "|")), url.Values{
		"start": {fmt.Sprint(unix(f.times.began))}, "end": {fmt.Sprint(unix(f.times.ended))}, "step": {fmt.Sprint(scaled(time.Minute).Seconds())},
	})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for i := range found {
		lines = append(lines, fmt.Sprintf("      - {series: '%s', values: '%s'}\n", f.selector(found[i].Metric), f.values(t, &found[i], minute(f.times.ended)+1)))
	}
	slices.Sort(lines)
	fmt.Fprintf(b, "  - name: %s\n    interval: 1m\n    input_series:\n%s    promql_expr_test:\n", f.name, strings.Join(lines, ""))
	for _, alert := range f.byDelay() {
		for _, at := range []struct {
			time  time.Time
			fires string
		}{{f.times.breaking, "[]"}, {f.times.repairing, "[{labels: '{}', value: 1}]"}, {f.times.ended, "[]"}} {
			fmt.Fprintf(b, "      - {expr: 'count(ALERTS{alertname=\"%s\", alertstate=\"firing\"})', eval_time: %dm, exp_samples: %s}\n", alert, minute(at.time), at.fires)
		}
	}
}

var seriesName = regexp.MustCompile(`(\w+:)?pawl_[\w:]+`)

// usedSeries follows recording rules.
func (f *faulty) usedSeries(expr string) (names []string) {
	for _, name := range seriesName.FindAllString(expr, -1) {
		if r := f.rules[name]; r != nil {
			names = append(names, f.usedSeries(r.Expr)...)
		} else {
			names = append(names, name)
		}
	}
	return names
}

func unix(at time.Time) float64 { return float64(at.UnixMilli()) / 1000 }

func (f *faulty) selector(metric map[string]string) string {
	var labels []string
	for _, name := range slices.Sorted(maps.Keys(metric)) {
		value := metric[name]
		switch name {
		case "__name__":
			continue
		case "job":
			value = "pawl"
		case "instance":
			value = string(rune('a' + slices.Index(f.admins, value)))
		}
		labels = append(labels, fmt.Sprintf("%s=%q", name, value))
	}
	return metric["__name__"] + "{" + strings.Join(labels, ", ") + "}"
}

// values returns one value per minute in promtool's notation. Times count from the first minute.
func (f *faulty) values(t *testing.T, s *series, minutes int) string {
	t.Helper()
	all := make([]string, minutes)
	for _, point := range s.Values {
		at, _ := point[0].(float64)
		text, _ := point[1].(string)
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		i := int(math.Round((at - unix(f.times.began)) / scaled(time.Minute).Seconds()))
		switch name := s.Metric["__name__"]; {
		case name == "pawl_audit_last_success_timestamp_seconds": // rules.yml expects an audit per day
			v = float64(60*i) - (at-v)*(24*time.Hour).Seconds()/scaled(auditEvery).Seconds()
		case strings.HasSuffix(name, "_timestamp_seconds"):
			v = float64(60*i) - (at-v)*float64(*alertScale)
		case strings.HasSuffix(name, ":seconds"):
			v *= float64(*alertScale)
		}
		all[i] = strconv.FormatFloat(math.Round(v), 'f', -1, 64)
	}
	var words []string
	for i, n := 0, 0; i < minutes; i += n {
		for n = 1; i+n < minutes && all[i+n] == all[i]; n++ {
		}
		switch {
		case all[i] != "":
			words = append(words, fmt.Sprintf("%sx%d", all[i], n-1)) // the first one does not count
		case i == 0:
			words = append(words, fmt.Sprintf("_x%d", n))
		default:
			words = append(words, fmt.Sprintf("stale _x%d", n-1))
		}
	}
	return strings.Join(words, " ")
}
