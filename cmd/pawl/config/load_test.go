package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/cmd/pawl/config"
	"github.com/pawlhq/pawl/cmd/pawl/parts"
)

// env is the environment of the tests.
var env = map[string]string{
	"TOKEN": "s3cr3t",
	"WIDTH": "640",
	"WORDY": "s3cr3t words",
	"EMPTY": "",
	"YAML":  "x}\npipelines: [{name: injected}]",
}

func lookup(name string) (string, bool) {
	v, ok := env[name]
	return v, ok
}

// TestErrors compares error messages with testdata/errors.
func TestErrors(t *testing.T) {
	datadriven.RunTest(t, "testdata/errors", func(t *testing.T, d *datadriven.TestData) string {
		_, err := parts.Table.Parse("pawl.yaml", []byte(d.Input), lookup)
		if err == nil {
			return "no error\n"
		}
		for name, v := range env {
			if v != "" && strings.Contains(err.Error(), v) {
				t.Errorf("%s: the error holds the value of %s:\n%s", d.Pos, name, err)
			}
		}
		return err.Error() + "\n"
	})
}

// TestDecode compares decoded files with testdata/decode.
func TestDecode(t *testing.T) {
	datadriven.RunTest(t, "testdata/decode", func(_ *testing.T, d *datadriven.TestData) string {
		c, err := parts.Table.Parse("/etc/pawl/pawl.yaml", []byte(d.Input), lookup)
		if err != nil {
			return err.Error() + "\n"
		}
		return describe(c)
	})
}

// describe prints every field that is set.
func describe(c *config.Config) string {
	b, err := encode(c.File)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// encode writes a part like the file: a map under the name of its kind.
func encode(v any) ([]byte, error) {
	type ledger struct {
		Kind   string `yaml:"kind"`
		Config any    `yaml:",inline"`
	}
	return yaml.MarshalWithOptions(v, yaml.OmitZero(), yaml.UseLiteralStyleIfMultiline(true),
		yaml.CustomMarshaler(func(l config.Ledger) ([]byte, error) { return encode(ledger{l.Kind, l.Config}) }),
		yaml.CustomMarshaler(func(p config.Part) ([]byte, error) { return encode(map[string]any{p.Kind: p.Config}) }))
}

// FuzzParse searches for a file that causes a panic, or that is accepted without a pipeline.
func FuzzParse(f *testing.F) {
	samples, err := filepath.Glob("../../../docs/examples/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range samples {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte("a: &x {b: *x}\nc: *x\n<<: *x\n"))
	f.Add([]byte("pipelines: [{name: ${TOKEN}, match: {bucket: $${X}}, exec: {command: [!!str a, 'b']}}]"))
	f.Add([]byte("? [a]\n: - - - b\n--- |\n  x\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := parts.Table.Parse("pawl.yaml", raw, lookup)
		if err == nil && len(c.Pipelines) == 0 {
			t.Error("accepted without a pipeline")
		}
	})
}

func TestSecretsReveal(t *testing.T) {
	c, err := parts.Table.Parse("pawl.yaml", []byte(`
sources: [{webhook: {listen: ":1", token: "Bearer ${TOKEN}", secret: $${TOKEN}}}]
pipelines: [{name: a, match: {bucket: b}, http: {url: u, secret: ${TOKEN}}}]
`), lookup)
	if err != nil {
		t.Fatal(err)
	}
	hook := c.Sources[0].Config.(parts.Webhook)
	got := []string{hook.Token.Reveal(), hook.Secret.Reveal(), c.Pipelines[0].Action.Config.(parts.HTTP).Secret.Reveal()}
	if diff := cmp.Diff([]string{"Bearer s3cr3t", "${TOKEN}", "s3cr3t"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestLoadNoFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "none.yaml")
	_, err := parts.Table.Load(name, lookup)
	if want := name + ": no such file: select another file with -c FILE"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestLoadTooLarge(t *testing.T) {
	name := filepath.Join(t.TempDir(), "large.yaml")
	if err := os.WriteFile(name, make([]byte, config.MaxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := parts.Table.Load(name, lookup); err == nil || !strings.Contains(err.Error(), "larger than 256 KiB") {
		t.Errorf("got %v", err)
	}
}

func TestAt(t *testing.T) {
	c, err := parts.Table.Parse("pawl.yaml", []byte("pipelines:\n  - name: a\n    match: {bucket: b}\n    copy:\n      to: s3://c/\n"), lookup)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"pipelines[0].copy.to":      "pawl.yaml: line 5, column 7: pipelines[0].copy.to: no good",
		"pipelines[0].copy.missing": "pawl.yaml: line 4, column 5: pipelines[0].copy.missing: no good",
		"pipelines[0]":              "pawl.yaml: line 2, column 5: pipelines[0]: no good",
		"lease.ttl":                 "pawl.yaml: lease.ttl: no good",
	} {
		if got := c.At(path, fmt.Errorf("no good")).Error(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestLoadLedger(t *testing.T) {
	load := func(text string) error {
		name := filepath.Join(t.TempDir(), "pawl.yaml")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := parts.Table.LoadLedger(name, lookup)
		return err
	}
	const rest = "sources: [{webhook: {listen: ${A}, token: ${B}}}]\npipelines: [{name: a, match: {bucket: ${C}}, http: {url: x}}]\n"
	if err := load("ledger: sqlite:x\n" + rest); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"ledger: ${D}\n" + rest, "lease: {ttl: x}\n" + rest} {
		if err := load(bad); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v", bad, err)
		}
	}
}

// TestLoadNoPipelines checks that LoadObjects accepts a file without pipelines.
func TestLoadNoPipelines(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pawl.yaml")
	if err := os.WriteFile(name, []byte("objects: {endpoint: http://x}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := parts.Table.LoadObjects(name, lookup); err != nil || c.Objects.Endpoint != "http://x" {
		t.Errorf("%+v, %v", c, err)
	}
	for _, load := range []func(string, func(string) (string, bool)) (*config.Config, error){parts.Table.Load, parts.Table.LoadLedger} {
		if _, err := load(name, lookup); err == nil || !strings.Contains(err.Error(), `"pipelines" is missing`) {
			t.Errorf("got %v", err)
		}
	}
}

func TestLoadObjects(t *testing.T) {
	load := func(objects, bucket string) (*config.Config, error) {
		text := "ledger: ${A}\nsources: [{webhook: {listen: ${B}}}]\nobjects: {" + objects + "}\n" +
			"pipelines: [{name: a, match: {bucket: " + bucket + "}, http: {url: x, secret: ${C}}}]\n"
		name := filepath.Join(t.TempDir(), "pawl.yaml")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return parts.Table.LoadObjects(name, lookup)
	}
	if c, err := load("endpoint: http://x", "b"); err != nil || c.Objects.Endpoint != "http://x" || c.Pipelines[0].Match.Bucket != "b" {
		t.Errorf("%+v, %v", c, err)
	}
	for _, bad := range [][2]string{{"endpoint: ${D}", "b"}, {"region: ${D}", "b"}, {"", "${D}"}, {"size: 3", "b"}} {
		if _, err := load(bad[0], bad[1]); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v", bad, err)
		}
	}
}
