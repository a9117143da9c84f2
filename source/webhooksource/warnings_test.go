package webhooksource

import (
	"strings"
	"testing"
)

func TestExcerpt(t *testing.T) {
	for payload, want := range map[string]string{
		"":                       "",
		"{\"a\":\n\t\"é\"}":      `{"a":  "é"}`,
		"\x1b[2J\xff":            "\uFFFD[2J\uFFFD",
		strings.Repeat("x", 200): strings.Repeat("x", 200),
		strings.Repeat("x", 201): strings.Repeat("x", 200) + "...",
	} {
		if got := excerpt([]byte(payload)); got != want {
			t.Errorf("%q is logged as %q, want %q", payload, got, want)
		}
	}
}
