package mutants

import (
	"strings"
	"testing"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/proof/sim"
)

func TestPatches(t *testing.T) {
	for _, m := range all(t) {
		if _, err := m.Apply(root(t)); err != nil {
			t.Error(err)
		}
	}
}

const aDiff = "\ndiff --git a/x.go b/x.go\n--- a/x.go\n+++ b/x.go\n@@ -2,3 +2,3 @@\n b\n-c\n+C\n d\n"

func TestHeader(t *testing.T) {
	for _, tc := range []struct {
		header string
		want   Mutant // if wrong is empty
		wrong  string
	}{
		{header: "Why: a crash\n  loses: it\nBudget: 20000\n", want: Mutant{Why: "a crash loses: it", Budget: 20000}},
		{
			header: "Why: x\nFrom: y\nTest: ./archive -run 'Test A$' -v\nSays: A[26]: x\nInvariant: I6\n",
			want:   Mutant{Why: "x", From: "y", Test: &Test{Invariant: sim.I6, Args: []string{"./archive", "-run", "Test A$", "-v"}, Says: "A[26]: x"}},
		},
		{header: "Why: x\n", wrong: "either Budget or Test"},
		{header: "Why: x\nBudget: 1\nTest: ./x\nSays: y\n", wrong: "either Budget or Test"},
		{header: "Budget: 1\n", wrong: "Why is missing"},
		{header: "Why: x\nBudget: many\n", wrong: "Budget"},
		{header: "Why: x\nTest: ./x\n", wrong: "Test and Says belong together"},
		{header: "Why: x\nTest: 'x\nSays: y\n", wrong: "not closed"},
		{header: "Why: x\nBudget: 1\nInvariant: I6\n", wrong: "needs a Test"},
		{header: "Why: x\nTest: ./x\nSays: y\nInvariant: I99\n", wrong: "I99"},
		{header: "Because: x\nBudget: 1\n", wrong: `"Because"`},
	} {
		got, err := parse(tc.header + aDiff)
		if tc.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), tc.wrong) {
				t.Errorf("%q: %v, want an error with %q", tc.header, err, tc.wrong)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%q: %v", tc.header, err)
		}
		got.Diffs = nil
		if diff := cmp.Diff(tc.want, *got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tc.header, diff)
		}
	}
}

func TestHunksAreRelocated(t *testing.T) {
	diffs, _, err := gitdiff.Parse(strings.NewReader(aDiff))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		text, want string // want "": an error
	}{
		{text: "a\nb\nc\nd\ne\n", want: "a\nb\nC\nd\ne\n"},
		{text: "0\n0\na\nb\nc\nd\ne\n", want: "0\n0\na\nb\nC\nd\ne\n"},
		{text: "a\nb\nc\nd\nb\nc\nd\n", want: "a\nb\nC\nd\nb\nc\nd\n"}, // at its line
		{text: "a\n0\nb\nc\nd\nb\nc\nd\n"},                             // ambiguous
		{text: "a\nb\nx\nd\n"},
	} {
		got, err := Apply(tc.text, diffs[0])
		if got != tc.want || (err != nil) != (tc.want == "") {
			t.Errorf("%q: %q, %v", tc.text, got, err)
		}
	}
}
