package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	flags, packages := parse([]string{"--workers", "1", "./event"})
	if diff := cmp.Diff([][]string{{"--workers", "1"}, {"./event"}}, [][]string{flags, packages}); diff != "" {
		t.Errorf("flags and packages (-want +got):\n%s", diff)
	}
	if _, packages := parse(nil); len(packages) != 3 {
		t.Errorf("parse() = %q, want the three packages that decide", packages)
	}
}

func TestCoverageBlocksAreWidened(t *testing.T) {
	const (
		profile = "mode: set\n" +
			"x/b.go:3.10,4.2 1 1\n" +
			"x/a.go:9.3,10.12 1 1\n" +
			"x/a.go:5.20,6.9 1 1\n" +
			"x/a.go:7.11,8.12 1 0\n" +
			"x/a.go:10.12,11.3 1 1\n"
		want = "mode: set\n" +
			"x/a.go:1.1,6.9 1 1\n" +
			"x/a.go:7.11,8.12 1 0\n" +
			"x/a.go:8.12,10.12 1 1\n" +
			"x/a.go:10.12,11.3 1 1\n" +
			"x/b.go:1.1,4.2 1 1\n"
	)
	got, err := widened(profile)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("widened: %v (-want +got):\n%s", err, diff)
	}
	if _, err := widened("mode: set\nnonsense\n"); err == nil {
		t.Error("widened accepts an invalid profile")
	}
}
