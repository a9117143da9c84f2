package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"
)

type failure struct {
	pkg, test string
	indent    int // of the header; the failure's lines have more
	lines     []string
}

const (
	failureLines = 20
	failureWidth = 240 // characters per line
)

var (
	failedTest    = regexp.MustCompile(`^--- FAIL: (\S+)`)
	crash         = regexp.MustCompile(`^(panic: |fatal error: |WARNING: DATA RACE)`)
	failedPackage = regexp.MustCompile(`^FAIL\t(\S+)\s*(.*)`)
)

// Without -v, go test prints the line of a package after those of its tests.
func failuresIn(said string) []failure {
	var all []failure
	first, at := 0, 0 // indices in all: of the package's first failure, and the current one
	for line := range strings.Lines(said) {
		text := strings.TrimSpace(line)
		indent := strings.Index(line, text)
		if m := failedPackage.FindStringSubmatch(text); m != nil {
			if len(all) == first {
				all = append(all, failure{test: m[2]})
			}
			for ; first < len(all); first++ {
				all[first].pkg = m[1]
			}
			continue
		}
		if m := failedTest.FindStringSubmatch(text); m != nil {
			at, all = len(all), append(all, failure{test: m[1], indent: indent})
			continue
		}
		if crash.MatchString(line) {
			at, all = len(all), append(all, failure{test: text, indent: -1}) // not indented
			continue
		}
		for at > first && indent > 0 && all[at].indent >= indent {
			at-- // the parent
		}
		if text != "" && text != "FAIL" && first < len(all) && all[at].indent < indent && len(all[at].lines) < failureLines {
			all[at].lines = append(all[at].lines, fmt.Sprintf("%.*s", failureWidth, text))
		}
	}
	return all
}

// The last lines are one per failure, because a log may be cut to its end.
func printFailures(w io.Writer, all []failure) {
	var whole, list strings.Builder
	for i, f := range all {
		if len(f.lines) == 0 && i+1 < len(all) && strings.HasPrefix(all[i+1].test, f.test+"/") {
			continue // its subtest has the reason
		}
		lines := append([]string{f.pkg + " " + f.test}, f.lines...)
		fmt.Fprintln(&whole, strings.Join(lines, "\n    "))
		fmt.Fprintln(&list, strings.Join(lines[:min(2, len(lines))], ": "))
	}
	if len(all) > 0 {
		fmt.Fprintf(w, "== failed tests\n%s%s", whole.String(), list.String())
	}
}
