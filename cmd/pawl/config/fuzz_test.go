package config

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// paper is a kind of ledger for the test.
type paper struct{ sheet string }

var papers = []LedgerKind{
	{"paper", "paper:SHEET", func(rest, _ string) (any, error) { return paper{rest}, nil }},
	{"sand", "sand", func(string, string) (any, error) { return paper{}, nil }},
}

func noVariables(string) (string, bool) { return "", false }

// FuzzScalars checks every scalar type: a value equals the parsed result of its printed
// form, it is never the zero value, and an error does not contain the text, which may come
// from an environment variable.
func FuzzScalars(f *testing.F) {
	for _, seed := range []string{
		"30s", "1h30m", "-1s", "0", "9223372036854775807ns", "1e9h", "512MiB", "1.5 GB", "99999999999999999999EB", "18446744073709551615", "0B", "١s", "NaN",
		"s3://photos-out/gray/", "s3://b", "s3://b//", "s3:///", "s3://b/x", "sand", "sand:", "paper:a", "paper::b", "paper:", "paper", "postgres://u:hunter2@h/db",
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
		rows   = Ledger{kinds: papers}
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
	if p, ok := rows.Config.(paper); rows.Kind == "paper" && text != "paper:"+p.sheet || ok != (rows.Kind != "") {
		t.Errorf("%q is the ledger %#v", text, rows.Part)
	}
	if secret.Reveal() != text || text != "" && fmt.Sprintf("%v %+v %#v %s %q", secret, secret, secret, &secret, secret) != `[redacted] [redacted] [redacted] [redacted] "[redacted]"` {
		t.Errorf("the secret %q is %q and prints as %#v", text, secret.Reveal(), secret)
	}
}

// fuzzVariables checks that expand restores an escaped text, and that the braces that
// protect replaces are restored.
func fuzzVariables(t *testing.T, text string) {
	escaped := strings.ReplaceAll(text, "${", "$${")
	if got, names, err := expand(escaped, noVariables); err != nil || got != text || len(names) > 0 {
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
