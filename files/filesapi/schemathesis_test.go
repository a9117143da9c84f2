package filesapi_test

import (
	"flag"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/files/filesapi"
	"github.com/pawlhq/pawl/proof/servertest"
)

var examples = flag.Int("examples", 10, "requests that Schemathesis makes for each operation in a phase")

// TestSchemathesis sends generated requests:
//
//	go test ./files/filesapi -run TestSchemathesis -examples 2000 -timeout 2h -v
func TestSchemathesis(t *testing.T) {
	for name, c := range map[string]struct{ description, path, exclude string }{
		// The description lacks some rules for sizes, cursors and types, and a deleted file can be
		// undeleted.
		"REST": {"openapi.yaml", "", "positive_data_acceptance,use_after_free"},
		// The schema lacks the cost limits. Schemathesis treats each error of an operation as a server
		// error, so the hooks module checks errors.
		"GraphQL": {"schema.graphql", "/graphql", "positive_data_acceptance,not_a_server_error"},
	} {
		t.Run(name, func(t *testing.T) {
			x := serve(t, func(c *filesapi.Config) {
				c.Rate, c.Burst, c.MaxSize, c.Logger = 1e9, 1e9, math.MaxInt64, slog.New(slog.DiscardHandler)
			})
			x.files.Limit = func(string) files.Usage { return files.Usage{Bytes: math.MaxInt64, Open: math.MaxInt64} }
			stored := x.want(http.StatusCreated, token(t, "write:*"), "POST", "/v1/files?entity=e", []byte("text"))
			out, err := schemathesis(t, x.url+c.path, c.description, c.exclude, stored["fileId"])
			t.Logf("%s", out)
			if err != nil {
				t.Error(err)
			}
		})
	}
}

const dictionary = `
dictionaries.known.values = ["e", %q, "text/plain"]
generation.dictionaries.string = {dictionary = "known", probability = 0.3}
`

func schemathesis(t *testing.T, url, description, exclude string, id any) ([]byte, error) {
	python, script, hooks := servertest.Schemathesis(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "schemathesis.toml"), fmt.Appendf(nil, dictionary, id), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, script, "run", must(filepath.Abs(description)), "--url", url,
		"--header", "Authorization: Bearer "+token(t, "read:* write:*"), "--max-examples", strconv.Itoa(*examples),
		"--checks", "all", "--exclude-checks", exclude, "--no-color")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "SCHEMATHESIS_HOOKS="+hooks)
	return cmd.CombinedOutput()
}
