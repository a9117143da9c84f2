package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/proof/mutants"
)

type repo struct {
	*testing.T
	dir string
}

func newRepo(t *testing.T) *repo {
	t.Helper()
	r := &repo{t, t.TempDir()}
	r.git("2020-01-01", "init", "-q", "-b", "main")
	return r
}

// The clock of git is at noon of day.
func (r *repo) git(day string, args ...string) string {
	r.Helper()
	cmd := exec.CommandContext(r.Context(), "git", args...)
	cmd.Dir = r.dir
	outside := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GIT_") }) // variables of a hook name another repository
	cmd.Env = slices.Concat(outside, []string{
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org",
		"GIT_AUTHOR_DATE=" + day + "T12:00:00Z", "GIT_COMMITTER_DATE=" + day + "T12:00:00Z",
	})
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r *repo) commit(day, file, text string) string {
	r.Helper()
	r.write(file, text)
	r.git(day, "add", "-A")
	r.git(day, "commit", "-q", "-m", file)
	return r.git(day, "rev-parse", "HEAD")
}

func (r *repo) write(file, text string) {
	r.Helper()
	name := filepath.Join(r.dir, file)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		r.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		r.Fatal(err)
	}
}

func (r *repo) want(base string, files ...string) {
	r.Helper()
	c := findChanges(r.Context(), r.dir)
	if c.base != base || !slices.Equal(c.files, files) {
		r.Errorf("%s: %v since %q, want %v since %q", c, c.files, c.base, files, base)
	}
	if (c.find(func(file string) bool { return file == "b" }) != "") != (base == "" || slices.Contains(files, "b")) {
		r.Errorf("whether b counts as changed: %q", c.find(func(file string) bool { return file == "b" }))
	}
}

func TestFindChanges(t *testing.T) {
	r := newRepo(t)
	r.want("") // no commit
	first := r.commit("2020-01-01", "a", "1")
	r.want("") // no commit is a day older
	second := r.commit("2020-01-02", "b", "1")
	r.want(first, "b")
	r.commit("2020-01-02", "c", "1")
	r.want(first, "b", "c")

	r.write("new", "not added")
	r.write("a", "not committed")
	r.want(first, "a", "b", "c", "new")
	r.git("2020-01-02", "checkout", "-q", "a")
	r.git("2020-01-02", "clean", "-qf")

	left := r.git("2020-01-03", "rev-parse", "HEAD")
	r.git("2020-01-03", "checkout", "-q", "-b", "branch")
	r.commit("2020-01-04", "d", "1")
	r.want(left, "d")

	r.git("2020-01-04", "tag", "v1", second)
	r.want(second, "c", "d")
	r.git("2020-01-04", "tag", "v2") // the tested commit is compared with the previous release
	r.want(second, "c", "d")
}

// Some runners create such a clone.
func TestFindChangesInShallowClone(t *testing.T) {
	r := newRepo(t)
	r.commit("2020-01-01", "a", "1")
	r.commit("2020-01-05", "b", "1")
	to := filepath.Join(t.TempDir(), "clone")
	r.git("2020-01-06", "clone", "-q", "--depth", "1", "file://"+r.dir, to)
	(&repo{t, to}).want("")
	(&repo{t, t.TempDir()}).want("") // not a repository
}

func TestChoose(t *testing.T) {
	all := []candidate{
		{"b", unrelated, ""}, {"f", changedDetector, "x"}, {"c", changedDetector, "x"}, {"a", unrelated, ""}, {"e", changedTarget, "y"},
	}
	for most, want := range map[int]string{0: "", 1: "e", 2: "e c", 9: "e c f"} {
		chosen, left := choose(all, most)
		if got := strings.Join(names(chosen), " "); got != want || len(chosen)+len(left) != len(all) {
			t.Errorf("at most %d: chose %q, want %q, left %v", most, got, want, left)
		}
	}
}

func TestMergeTargetsExist(t *testing.T) {
	targets, err := fuzzTargets(t.Context(), "../..", []string{"./..."})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range mergeTargets {
		if !slices.ContainsFunc(targets, func(t target) bool { return t.String() == want }) {
			t.Errorf("no target %s", want)
		}
	}
}

func TestMutantsAreRanked(t *testing.T) {
	known, err := mutants.Read(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		file, mutant string
		want         rank
	}{
		{"lock/record.go", "token-does-not-rise", changedTarget},
		{"lock/world_test.go", "token-does-not-rise", changedDetector},
		{"lock/testdata/fuzz/x", "token-does-not-rise", changedDetector},
		{"lock/testdata/mutants/token-does-not-rise.patch", "token-does-not-rise", changedTarget},
		{"lock/testdata/mutants/lock-409-means-lost.patch", "token-does-not-rise", unrelated},
		{"lock/lead.go", "token-does-not-rise", unrelated},
		{"proof/sim/world.go", "token-does-not-rise", unrelated},
		{"proof/sim/world.go", "an-older-event-wins", changedDetector},
		{"internal/simkit/tape.go", "an-older-event-wins", changedDetector},
		{"internal/simkit/queue.go", "an-archive-listed-by-its-first-page", changedDetector},
		{"internal/simkit/queue.go", "token-does-not-rise", changedDetector},
		{"files/internal/world/world.go", "files-throttled-batch-taken-for-sent", changedDetector},
		{mutantsDir + "/mutants_test.go", "an-older-event-wins", changedDetector},
		{mutantsDir + "/testdata/an-older-event-wins.patch", "an-older-event-wins", changedTarget},
		{mutantsDir + "/testdata/acts-twice.patch", "an-older-event-wins", unrelated},
	} {
		all := mutantCandidates(known, &changes{base: "x", files: []string{tc.file}})
		i := slices.IndexFunc(all, func(c candidate) bool { return c.name == tc.mutant })
		if all[i].rank != tc.want || (all[i].why == "") != (tc.want == unrelated) {
			t.Errorf("%s has changed, %s: %+v, want rank %d", tc.file, tc.mutant, all[i], tc.want)
		}
	}
}
