// Command table copies the output of go test, and appends a table of the results and their targets.
//
//	go test -bench . ./... | go run ./table
//
// The table shows the median of several runs. The exit code is 1 if a benchmark failed, but not if
// it missed its target, because the machine may be busy.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// The targets are those in CONTRIBUTING.md.
var targets = []struct {
	name, unit  string
	least, most float64 // bounds of the target; 0 means no bound
}{
	{name: "proof/e2e BenchmarkCycle", unit: "ratio", least: 0.6},
	{name: "proof/e2e BenchmarkCyclePostgres", unit: "ratio", least: 0.7},
	{name: "store/postgres BenchmarkSwap", unit: "ratio", least: 0.7},
	{name: "store/dynamo BenchmarkRead/Scan", unit: "MB", most: 100},
	{name: "store/dynamo BenchmarkRead/Audit", unit: "MB", most: 100},
	{name: "bench BenchmarkPeers", unit: "pawl/river", least: 3},
	{name: "bench BenchmarkPeers", unit: "pawl/restate"},
	{name: "bench BenchmarkSQS", unit: "store/bento", least: 4},
	{name: "bench BenchmarkSQS", unit: "event/bento", least: 4},
	{name: "bench BenchmarkParseRatio/records=1", unit: "times", least: 2},
	{name: "bench BenchmarkParseRatio/records=10", unit: "times", least: 2},
	{name: "proof/e2e BenchmarkReplay", unit: "MB", most: 200},
	{name: "proof/e2e BenchmarkAudit", unit: "ratio", least: 0.8},
	{name: "proof/e2e BenchmarkAudit", unit: "MB", most: 100},
	{name: "proof/e2e BenchmarkArchiveRate", unit: "ratio", least: 0.7},
	{name: "proof/e2e BenchmarkFiles/sqlite", unit: "list-p99-ms", most: 5},
	{name: "proof/e2e BenchmarkFiles/sqlite", unit: "graphql-list-p99-ms", most: 5},
	{name: "proof/e2e BenchmarkFiles/sqlite", unit: "upload-p99-ms", most: 5},
	{name: "proof/e2e BenchmarkFiles/postgres", unit: "list-p99-ms", most: 5},
	{name: "proof/e2e BenchmarkFiles/postgres", unit: "graphql-list-p99-ms", most: 5},
	{name: "proof/e2e BenchmarkFiles/postgres", unit: "upload-p99-ms", most: 5},
	{name: "proof/e2e BenchmarkFiles/visible", unit: "visible-p99-ms", most: 500},
	{name: "proof/e2e BenchmarkFiles/stream", unit: "one-MB", most: 32},
}

func main() {
	got, failed, err := read(os.Stdin, os.Stdout)
	if err == nil {
		err = write(os.Stdout, got)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
	}
	if err != nil || failed {
		os.Exit(1)
	}
}

// metrics has one value per run for each unit.
type metrics map[string][]float64

var processors = regexp.MustCompile(`-\d+$`)

// The key of the result is the package's folder and the benchmark's name.
func read(in io.Reader, out io.Writer) (got map[string]metrics, failed bool, err error) {
	got = map[string]metrics{}
	folder := ""
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		fmt.Fprintln(out, lines.Text())
		failed = failed || strings.HasPrefix(lines.Text(), "FAIL")
		if pkg, ok := strings.CutPrefix(lines.Text(), "pkg: github.com/pawlhq/pawl/"); ok {
			folder = pkg
		}
		f := strings.Fields(lines.Text())
		if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") {
			continue
		}
		name := folder + " " + processors.ReplaceAllString(f[0], "")
		if got[name] == nil {
			got[name] = metrics{}
		}
		for i := 2; i+1 < len(f); i += 2 {
			v, err := strconv.ParseFloat(f[i], 64)
			if err != nil {
				return nil, failed, fmt.Errorf("parse %q: %w", lines.Text(), err)
			}
			got[name][f[i+1]] = append(got[name][f[i+1]], v)
		}
	}
	return got, failed, lines.Err()
}

// Each line ends with the rates from which the metric was computed.
func write(out io.Writer, got map[string]metrics) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nBENCHMARK\tFIGURE\tMEDIAN\tWANTED\t\tRATES")
	for _, w := range targets {
		f := got[w.name]
		if f[w.unit] == nil {
			fmt.Fprintf(t, "%s\t%s\t\t%s\tnot run\t\n", w.name, w.unit, bound(w.least, w.most))
			continue
		}
		v := median(f[w.unit])
		verdict := "ok"
		if v < w.least || w.most > 0 && v > w.most {
			verdict = "MISSED"
		}
		fmt.Fprintf(t, "%s\t%s\t%.2f\t%s\t%s\t%s\n", w.name, w.unit, v, bound(w.least, w.most), verdict, f.rates())
	}
	return t.Flush()
}

func bound(least, most float64) string {
	switch {
	case least > 0:
		return fmt.Sprintf("at least %v", least)
	case most > 0:
		return fmt.Sprintf("at most %v", most)
	}
	return ""
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

func (f metrics) rates() string {
	var all []string
	for unit, values := range f {
		if name, ok := strings.CutSuffix(unit, "/s"); ok {
			all = append(all, fmt.Sprintf("%s %.0f/s", name, median(values)))
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
