package demo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/cmd/pawl/parts"
)

// The folder's name has special characters of YAML and of the configuration.
func TestConfig(t *testing.T) {
	dir := t.TempDir() + `/a "b" ${HOME} #c`
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := writeConfig(dir, "http://127.0.0.1:9"); err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{}
	for _, v := range environment("127.0.0.1:8", "word") {
		name, value, _ := strings.Cut(v, "=")
		vars[name] = value
	}
	c, err := parts.Table.Load(filepath.Join(dir, configFile), func(name string) (string, bool) { v, ok := vars[name]; return v, ok })
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(dir, ledgerFile); c.Ledger.Config != any(parts.SQLite{Path: want}) {
		t.Errorf("ledger %+v, want %q", c.Ledger.Config, want)
	}
	hook, lease := c.Sources[0].Config.(parts.Webhook), c.Lease
	if hook.Listen != "127.0.0.1:8" || hook.Path != hookPath || hook.Token.Reveal() != "Bearer word" {
		t.Errorf("webhook %+v", hook)
	}
	if time.Duration(lease.TTL) != 2*time.Second || time.Duration(lease.LateWriteWindow) != 2*time.Second {
		t.Errorf("lease %+v", lease)
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("AWS_PROFILE", "production")
	t.Setenv("AWS_ENDPOINT_URL", "https://example.org")
	t.Setenv("HOME", "/home/me")
	all := strings.Join(environment("a", "b"), "\n")
	if strings.Contains(all, "production") || strings.Contains(all, "example.org") || !strings.Contains(all, "HOME=/home/me") {
		t.Errorf("the workers' environment is\n%s", all)
	}
}
