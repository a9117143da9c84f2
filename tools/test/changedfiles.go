package main

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// Uncommitted files count as changes.
type changes struct {
	root  string
	head  string   // "" if the tree is not a git repository
	base  string   // if it is "", every file counts as changed
	why   string   // description of base, or why there is none
	files []string // relative to root, sorted
}

// findChanges depends only on the commit and the files. Without git or a history, every file counts as
// changed.
func findChanges(ctx context.Context, root string) *changes {
	c := &changes{root: root}
	c.head, _ = c.git(ctx, "rev-parse", "HEAD")
	c.base, c.why = c.findBase(ctx)
	if c.base == "" {
		return c
	}
	changed, err := c.git(ctx, "diff", "--name-only", "--no-renames", c.base)
	fresh, err2 := c.git(ctx, "ls-files", "--others", "--exclude-standard")
	if err != nil || err2 != nil {
		c.base, c.why = "", "git cannot compare with "+c.why
		return c
	}
	c.files = slices.Concat(strings.Fields(changed), strings.Fields(fresh))
	slices.Sort(c.files)
	return c
}

// Without a tag, the base on main is a commit of this age. Several commits may arrive between two runs, so
// the parent is not enough.
const lookBackSeconds = 24 * 60 * 60

func (c *changes) findBase(ctx context.Context) (commit, why string) {
	for _, from := range []string{"HEAD", "HEAD^"} {
		tag, err := c.git(ctx, "describe", "--tags", "--abbrev=0", from)
		if err != nil {
			continue
		}
		if commit, err := c.git(ctx, "rev-parse", tag+"^{commit}"); err == nil && commit != c.head {
			return commit, "the last tag, " + tag
		}
	}
	for _, main := range []string{"origin/HEAD", "origin/main", "main"} {
		if commit, err := c.git(ctx, "merge-base", "HEAD", main); err == nil && commit != c.head {
			return commit, "the commit where the branch forked from " + main
		}
	}
	at, err := c.git(ctx, "show", "-s", "--format=%ct", "HEAD")
	if err != nil {
		return "", "no history"
	}
	seconds, _ := strconv.ParseInt(at, 10, 64)
	commit, err = c.git(ctx, "rev-list", "-1", "--first-parent", fmt.Sprintf("--min-age=%d", seconds-lookBackSeconds), "HEAD")
	if err != nil || commit == "" {
		return "", "no tag, and no commit that is a day older"
	}
	return commit, "a day older on the same branch, because there is no tag"
}

// git also works in a folder of another user.
func (c *changes) git(ctx context.Context, args ...string) (string, error) {
	all := append([]string{"-c", "safe.directory=" + c.root, "-c", "core.quotePath=off"}, args...)
	cmd := exec.CommandContext(ctx, "git", all...)
	cmd.Dir = c.root
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

func (c *changes) find(match func(file string) bool) string {
	if c.base == "" {
		return "everything counts as changed"
	}
	if i := slices.IndexFunc(c.files, match); i >= 0 {
		return c.files[i] + " has changed"
	}
	return ""
}

func (c *changes) String() string {
	if c.base == "" {
		return fmt.Sprintf("everything counts as changed: %s", c.why)
	}
	return fmt.Sprintf("%d files have changed since %.12s (%s)", len(c.files), c.base, c.why)
}
