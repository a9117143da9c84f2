package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

type repo struct {
	*testing.T
	root string
}

func newRepo(t *testing.T) *repo {
	t.Helper()
	r := &repo{t, t.TempDir()}
	r.git("init", "-q")
	r.write("x.go", source)
	r.write(early, "Why: x\nBudget: 1\n\ndiff --git a/x.go b/x.go\n--- a/x.go\n+++ b/x.go\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n")
	r.write(late, "Why: y\nBudget: 1\n\ndiff --git a/x.go b/x.go\n--- a/x.go\n+++ b/x.go\n@@ -11,4 +11,4 @@\n k\n l\n-m\n+M\n n\n")
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "first")
	return r
}

const (
	source = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\nn\n"
	early  = "proof/mutants/testdata/early.patch"
	late   = "proof/mutants/testdata/late.patch"
)

func (r *repo) git(args ...string) {
	r.Helper()
	cmd := exec.CommandContext(r.Context(), "git", args...)
	cmd.Dir = r.root
	outside := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GIT_") })
	cmd.Env = slices.Concat(outside, []string{"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org"})
	if out, err := cmd.CombinedOutput(); err != nil {
		r.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func (r *repo) write(name, text string) {
	r.Helper()
	file := filepath.Join(r.root, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		r.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		r.Fatal(err)
	}
}

func (r *repo) run(wantConflicts int) (out, first, second string) {
	r.Helper()
	var b strings.Builder
	if conflicts, err := reanchor(r.Context(), &b, r.root); err != nil || conflicts != wantConflicts {
		r.Fatalf("%d conflicts, %v, want %d\n%s", conflicts, err, wantConflicts, b.String())
	}
	text := func(name string) string {
		b, err := os.ReadFile(filepath.Join(r.root, name))
		if err != nil {
			r.Fatal(err)
		}
		return string(b)
	}
	return b.String(), text(early), text(late)
}

func TestPatchesThatApplyAreKept(t *testing.T) {
	if out, _, _ := newRepo(t).run(0); out != "" {
		t.Errorf("printed %q", out)
	}
}

// The patch "early" still applies.
func TestPatchesAreMerged(t *testing.T) {
	r := newRepo(t)
	r.write("x.go", "a\nb\nc\nd!\ne\nf\n1\ng\nh\ni\nj!\nk!\nl\nm\nn\n")
	out, first, second := r.run(0)
	if out != late+": rewritten\n" || !strings.HasPrefix(first, "Why: x\n") {
		t.Errorf("printed %q, early is now\n%s", out, first)
	}
	if !strings.HasPrefix(second, "Why: y\nBudget: 1\n\ndiff --git a/x.go b/x.go\nindex ") || !strings.HasSuffix(second, "\n j!\n k!\n l\n-m\n+M\n n\n") {
		t.Errorf("late is now\n%s", second)
	}
	if out, _, _ := r.run(0); out != "" {
		t.Errorf("the second run printed %q", out)
	}
}

func TestConflictsKeepThePatch(t *testing.T) {
	for name, tc := range map[string]struct{ source, want string }{
		"the line has changed":  {strings.Replace(source, "m", "m!", 1), "late.patch: x.go and the patch change the same lines:\n<<<<<<< current\nm!"},
		"the mutation is there": {strings.Replace(source, "m", "M", 1), "late.patch: x.go already contains the change"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepo(t)
			_, before, beforeLate := r.run(0)
			r.write("x.go", tc.source)
			out, after, afterLate := r.run(1)
			if !strings.Contains(out, tc.want) || after != before || afterLate != beforeLate {
				t.Errorf("printed %q, want %q; late is now\n%s", out, tc.want, afterLate)
			}
		})
	}
	t.Run("the file is gone", func(t *testing.T) {
		r := newRepo(t)
		r.git("mv", "x.go", "y.go")
		if out, _, _ := r.run(2); !strings.Contains(out, "x.go: no such file") {
			t.Errorf("printed %q", out)
		}
	})
	t.Run("never committed", func(t *testing.T) {
		r := newRepo(t)
		r.git("rm", "-q", "--cached", late)
		r.git("commit", "-q", "--amend", "-m", "first")
		r.write("x.go", strings.Replace(source, "l", "l!", 1))
		if out, _, _ := r.run(1); !strings.Contains(out, "never committed") {
			t.Errorf("printed %q", out)
		}
	})
}
