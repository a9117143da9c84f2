package app

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestShorten(t *testing.T) {
	long := "s3://photos/in/" + strings.Repeat("ä", 100) + "/cat.jpg"
	if got := Shorten(long, 0); got != long {
		t.Errorf("in a pipe: %s", got)
	}
	got := Shorten(long, 120)
	if n := utf8.RuneCountInString(got); n != objectWidth {
		t.Errorf("%s has %d characters", got, n)
	}
	if !strings.HasPrefix(got, "s3://photos/in/ä") || !strings.HasSuffix(got, "ä/cat.jpg") || !strings.Contains(got, "…") {
		t.Errorf("got %s", got)
	}
	if short := "s3://photos/in/" + strings.Repeat("ä", 45); Shorten(short, 120) != short {
		t.Error("an object that fits was shortened")
	}
}

func TestFormatDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "1s", 90 * time.Second: "90s", 10 * time.Minute: "10m", 47 * time.Hour: "47h", 72 * time.Hour: "3d",
	} {
		if got := FormatDuration(d); got != want {
			t.Errorf("span(%s) = %s, want %s", d, got, want)
		}
	}
}

func TestPrintable(t *testing.T) {
	if got, want := Printable("a\x1b[31m\nb “é” \xff"), `a\x1b[31m\nb “é” �`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
