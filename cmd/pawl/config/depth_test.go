package config

import (
	"strings"
	"testing"
)

// TestDepth rejects files for which the parser would need gigabytes of memory.
func TestDepth(t *testing.T) {
	for text, want := range map[string]int{
		"":                              0,
		"a: b":                          0,
		"- - ? x":                       3,
		"-":                             1,
		"--- a":                         0,
		"a: [b, {c: [d]}, [e]]":         3,
		"]]]]a: [":                      1,
		"- a: [\n- [\n- b":              2,
		strings.Repeat("- ", 1000):      1000,
		strings.Repeat("[", 1000) + "]": 1000,
	} {
		if got := depth([]byte(text)); got != want {
			t.Errorf("depth(%.20q) = %d, want %d", text, got, want)
		}
	}
	for _, text := range []string{strings.Repeat("- ", 1000), strings.Repeat("[", 1000)} {
		if _, err := new(Table).Parse("x", []byte(text), noVariables); err == nil || !strings.Contains(err.Error(), "nesting is too deep") {
			t.Errorf("%.20q: got %v", text, err)
		}
	}
}
