package cli

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestShorten: a long object loses its middle on a terminal, and nothing in a
// pipe, where programs read it.
func TestShorten(t *testing.T) {
	long := "s3://photos/in/" + strings.Repeat("ä", 100) + "/cat.jpg"
	if got := shorten(long, 0); got != long {
		t.Errorf("in a pipe: %s", got)
	}
	got := shorten(long, 120)
	if n := utf8.RuneCountInString(got); n != objectWidth {
		t.Errorf("%s has %d characters", got, n)
	}
	if !strings.HasPrefix(got, "s3://photos/in/ä") || !strings.HasSuffix(got, "ä/cat.jpg") || !strings.Contains(got, "…") {
		t.Errorf("got %s", got)
	}
	if short := "s3://photos/in/" + strings.Repeat("ä", 45); shorten(short, 120) != short {
		t.Error("an object that fits was shortened")
	}
}
