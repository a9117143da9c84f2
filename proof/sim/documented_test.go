package sim

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	documented = regexp.MustCompile(`(?m)^\| (I\d+) \| (.+?) \| .+ \| (.+) \|$`)
	quoted     = regexp.MustCompile("`([^`]+)`")
)

func TestInvariantsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/CORRECTNESS.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := documented.FindAllStringSubmatch(string(page), -1)
	if len(rows) != int(I14) {
		t.Fatalf("%d of %d invariants are documented", len(rows), I14)
	}
	source := sources(t)
	for n, row := range rows {
		i := Invariant(n + 1)
		if row[1] != i.String() || row[2] != i.Description() {
			t.Errorf("%s (%s) is documented as %s: %s", i, i.Description(), row[1], row[2])
		}
		places := quoted.FindAllStringSubmatch(row[3], -1)
		if len(places) == 0 {
			t.Errorf("%s: the function that checks it is not documented", i)
		}
		for _, place := range places {
			if name := place[1]; strings.Contains(name, "/") {
				if _, err := os.Stat(filepath.Join("..", "..", name)); err != nil {
					t.Errorf("%s: %v", i, err)
				}
			} else if !strings.Contains(source, " "+name+"(") && !strings.Contains(source, ") "+name+"(") {
				t.Errorf("%s: no function %s", i, name)
			}
		}
	}
}

func sources(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	return all.String()
}
