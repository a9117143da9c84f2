package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// FuzzParse looks for a file that makes the reader panic, or that it accepts
// without a pipeline.
func FuzzParse(f *testing.F) {
	samples, err := filepath.Glob("../../docs/examples/*.yaml")
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
		c, err := Parse("pawl.yaml", raw, lookup)
		if err == nil && len(c.Pipelines) == 0 {
			t.Error("accepted without a pipeline")
		}
	})
}

// FuzzScalars checks what holds for every value that is written as one word: it
// comes back from what it prints as, is never what stands for "left out", and
// an error does not repeat it, for it may be a variable's.
func FuzzScalars(f *testing.F) {
	for _, seed := range []string{
		"30s", "1h30m", "-1s", "0", "9223372036854775807ns", "1e9h", "512MiB", "1.5 GB", "99999999999999999999EB", "18446744073709551615", "0B", "١s", "NaN",
		"s3://photos-out/gray/", "s3://b", "s3://b//", "s3:///", "s3://b/x", "memory", "memory:", "sqlite:pawl.db", "sqlite::memory:", "sqlite:", "postgres://u:hunter2@h/db",
		"${TOKEN}", "$${TOKEN}", "$$${TOKEN}", "${", "${}", "${A B}", "a${TOKEN}b$${X}${X}", "{${TOKEN}}", "\ue000", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		fuzzScalars(t, text)
		fuzzVariables(t, text)
	})
}

func fuzzScalars(t *testing.T, text string) {
	var (
		d      Duration
		size   Size
		secret Secret
		to     Location
		rows   Ledger
	)
	for _, s := range []scalar{&d, &size, &secret, &to, &rows} {
		err := s.parse(text)
		if err != nil && len(text) >= 16 && strings.Contains(err.Error(), text) {
			t.Errorf("%T: %q repeats the text", s, err)
		}
	}
	if again := new(Duration); d < 0 || d > 0 && again.parse(time.Duration(d).String()) == nil && *again != d {
		t.Errorf("%q is the duration %d, and again %d", text, d, *again)
	}
	if again := new(Size); size < 0 || size > 0 && again.parse(fmt.Sprint(int64(size))) == nil && *again != size {
		t.Errorf("%q is the size %d, and again %d", text, size, *again)
	}
	if again := new(Location); !to.IsZero() && (again.parse(to.String()) != nil || *again != to || strings.Contains(to.Bucket, "/")) {
		t.Errorf("%q is the location %#v, and again %#v", text, to, *again)
	}
	if again := new(Ledger); rows != (Ledger{}) && (again.parse(rows.String()) != nil || *again != rows) {
		t.Errorf("%q is the ledger %#v, and again %#v", text, rows, *again)
	}
	if secret.Reveal() != text || text != "" && fmt.Sprintf("%v %+v %#v %s %q", secret, secret, secret, &secret, secret) != `[redacted] [redacted] [redacted] [redacted] "[redacted]"` {
		t.Errorf("the secret %q is %q and prints as %#v", text, secret.Reveal(), secret)
	}
}

// fuzzVariables checks that a text that is escaped comes back, and that hiding
// variables from YAML hides nothing for good.
func fuzzVariables(t *testing.T, text string) {
	escaped := strings.ReplaceAll(text, "${", "$${")
	if got, names, err := expand(escaped, lookup); err != nil || got != text || len(names) > 0 {
		t.Errorf("%q, escaped, is %q with %q, %v", text, got, names, err)
	}
	_, names, err := expand(text, func(string) (string, bool) { return "${TOKEN}", true })
	if err == nil && strings.Count(text, "${") < len(names) {
		t.Errorf("%q has the variables %q", text, names)
	}
	hidden, err := protect(text)
	if private := strings.ContainsAny(text, string(openBrace)+string(closeBrace)); private != (err != nil) {
		t.Errorf("%q: %v", text, err)
	}
	if err == nil && (showBraces.Replace(hidden) != text || len([]rune(hidden)) != len([]rune(text))) {
		t.Errorf("%q is hidden as %q", text, hidden)
	}
}
