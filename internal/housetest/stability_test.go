package housetest

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The tables of docs/STABILITY.md name each exit code, and each folder with packages, exactly once.
func TestStability(t *testing.T) {
	t.Chdir("../..")
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	find := func(pattern, text string) (found []string) {
		for _, m := range regexp.MustCompile("(?m)"+pattern).FindAllStringSubmatch(text, -1) {
			found = append(found, m[1])
		}
		slices.Sort(found)
		return found
	}
	page := read("docs/STABILITY.md")
	codes := find(`^\t[eE]xit\w+ += (\d+)`, read("cmd/pawl/app/exit.go")+read("cmd/pawl/lockcmd/exitcodes.go"))
	if diff := cmp.Diff(codes, find(`^\| (\d+) \|`, page)); diff != "" {
		t.Errorf("exit codes: -source +page\n%s", diff)
	}
	all, err := readSource()
	if err != nil {
		t.Fatal(err)
	}
	folders := []string{"bench", "pawl", "release"} // bench and release have modules of their own
	for _, p := range all {
		if top, _, _ := strings.Cut(p.dir, "/"); top != "." {
			folders = append(folders, top)
		}
	}
	slices.Sort(folders)
	_, packages, _ := strings.Cut(page, "| packages | status |")
	packages, _, _ = strings.Cut(packages, "\n\n")
	named := find("`([a-z]+)`", strings.Join(find(`^\| (.*?) \|`, packages), " "))
	if diff := cmp.Diff(slices.Compact(folders), slices.DeleteFunc(named, func(s string) bool { return s == "test" })); diff != "" {
		t.Errorf("packages: -folders +page\n%s", diff)
	}
}
