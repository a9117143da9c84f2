package housetest

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func section(t *testing.T, heading string) string {
	t.Helper()
	text, err := os.ReadFile("docs/STABILITY.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("docs/STABILITY.md has no section %q", heading)
	}
	table, _, _ := strings.Cut(after, "\n## ")
	return table
}

// The first column of a table names each folder with packages exactly once.
func TestStabilityNamesEachPackage(t *testing.T) {
	t.Chdir("../..")
	var named, want []string
	for _, row := range regexp.MustCompile(`(?m)^\| (.*?) \|`).FindAllStringSubmatch(section(t, "Go packages"), -1) {
		for _, name := range regexp.MustCompile("`([a-z]+)`").FindAllStringSubmatch(row[1], -1) {
			if name[1] != "test" {
				named = append(named, name[1])
			}
		}
	}
	all, err := readSource()
	if err != nil {
		t.Fatal(err)
	}
	folders := map[string]bool{"pawl": true, "release": true, "bench": true} // the last two have modules of their own
	for _, p := range all {
		if top, _, _ := strings.Cut(p.dir, "/"); top != "." {
			folders[top] = true
		}
	}
	want = slices.Sorted(maps.Keys(folders))
	slices.Sort(named)
	if diff := cmp.Diff(want, named); diff != "" {
		t.Errorf("docs/STABILITY.md: -folders +named\n%s", diff)
	}
}

func TestStabilityHasExitCodes(t *testing.T) {
	t.Chdir("../..")
	var want, got []string
	for _, name := range []string{"cmd/pawl/app/exit.go", "cmd/pawl/lockcmd/exitcodes.go"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^\t[eE]xit\w+ += (\d+)`).FindAllStringSubmatch(string(text), -1) {
			want = append(want, m[1])
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^\| (\d+) \|`).FindAllStringSubmatch(section(t, "Exit codes"), -1) {
		got = append(got, m[1])
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/STABILITY.md: -source +documented\n%s", diff)
	}
}
