package doctor_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/doctor"
)

var update = flag.Bool("update", false, "write the rows of docs/STORES.md")

// modules are the modules of the servers, and the go.mod with their versions.
var modules = map[string][2]string{
	"gofakes3":  {"github.com/johannesboyne/gofakes3", "go.mod"},
	"minio":     {"github.com/minio/minio", "tools/minio/go.mod"},
	"versitygw": {"github.com/versity/versitygw", "tools/versitygw/go.mod"},
}

// wantDocumented compares the store's row in docs/STORES.md with the report, except for the date.
func wantDocumented(t *testing.T, store string, r *doctor.Report) {
	t.Helper()
	page := filepath.Join("..", "docs", "STORES.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	row := documentedRow(t, store, r)
	if strings.Contains(string(text), "\n"+row) {
		return
	}
	if !*update {
		t.Errorf("docs/STORES.md does not have this row; go test ./doctor -run TestServers -update writes it:\n%s", row)
		return
	}
	old := regexp.MustCompile(`(?m)^\| ` + store + ` \| v.*$`)
	changed := old.ReplaceAllLiteralString(string(text), row+time.Now().UTC().Format(time.DateOnly)+" |")
	if err := os.WriteFile(page, []byte(changed), 0o644); err != nil {
		t.Fatal(err)
	}
}

// documentedRow returns the row up to the date.
func documentedRow(t *testing.T, store string, r *doctor.Report) string {
	t.Helper()
	mod, err := os.ReadFile(filepath.Join("..", modules[store][1]))
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(regexp.QuoteMeta(modules[store][0]) + ` (\S+)`).FindSubmatch(mod)
	if version == nil {
		t.Fatalf("%s has no version of %s", modules[store][1], modules[store][0])
	}
	verdicts := make(map[string]doctor.Verdict)
	for _, c := range r.Checks {
		verdicts[c.Name] = c.Verdict
	}
	row := fmt.Sprintf("| %s | %s |", store, version[1])
	for _, check := range []string{"create-once", "replace-match", "delete-match", "copy-whole", "copy-parts", "expired-signature"} {
		row += fmt.Sprintf(" %s |", verdicts[check])
	}
	safety := make(map[doctor.Safety][]string)
	for _, f := range r.Features {
		safety[f.Safety] = append(safety[f.Safety], f.Name)
	}
	for _, s := range []doctor.Safety{doctor.Safe, doctor.Limited, doctor.Unsafe} {
		row += fmt.Sprintf(" %s |", cmp.Or(strings.Join(safety[s], ", "), "none"))
	}
	return row + " "
}
