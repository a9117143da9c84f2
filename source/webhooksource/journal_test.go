package webhooksource

import (
	"strings"
	"testing"
	"time"
)

func TestComplaintCountsWhatItKeepsBack(t *testing.T) {
	var c complaint
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	steps := []struct {
		after  time.Duration
		unsaid int
		ok     bool
	}{
		{0, 0, true},
		{time.Second, 0, false},
		{quiet - 1, 0, false},
		{quiet, 2, true},
		{2*quiet - 1, 0, false},
		{2 * quiet, 1, true},
	}
	for _, s := range steps {
		if unsaid, ok := c.turn(start.Add(s.after)); unsaid != s.unsaid || ok != s.ok {
			t.Errorf("after %s: %d, %t, want %d, %t", s.after, unsaid, ok, s.unsaid, s.ok)
		}
	}
}

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
