package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/pawlhq/pawl/proof/mutants"
)

type conflict struct{ error }

func reanchor(ctx context.Context, w io.Writer, root string) (conflicts int, err error) {
	all, err := mutants.Read(os.DirFS(root))
	if err != nil {
		return 0, err
	}
	for _, m := range all {
		p := &patch{root: root, name: m.File}
		rewritten, err := p.update(ctx, m.Diffs)
		var c conflict
		switch {
		case errors.As(err, &c):
			conflicts++
			fmt.Fprintf(w, "%s: %v\n", p.name, err)
		case err != nil:
			return conflicts, fmt.Errorf("%s: %w", p.name, err)
		case rewritten:
			fmt.Fprintf(w, "%s: rewritten\n", p.name)
		}
	}
	return conflicts, nil
}

type patch struct{ root, name string }

func (p *patch) update(ctx context.Context, diffs []*gitdiff.File) (rewritten bool, err error) {
	var out bytes.Buffer
	for _, d := range diffs {
		current, err := os.ReadFile(filepath.Join(p.root, d.OldName))
		if errors.Is(err, os.ErrNotExist) {
			return false, conflict{err}
		}
		if err != nil {
			return false, fmt.Errorf("read the file that the patch changes: %w", err)
		}
		changed, err := mutants.Apply(string(current), d)
		if err != nil {
			rewritten = true
			changed, err = p.merge(ctx, string(current), d)
		}
		if err != nil {
			return false, err
		}
		diff, err := gitDiff(ctx, d.OldName, string(current), changed)
		if err != nil {
			return false, err
		}
		out.Write(diff)
	}
	if !rewritten {
		return false, nil
	}
	file := filepath.Join(p.root, p.name)
	text, err := os.ReadFile(file)
	if err != nil {
		return false, fmt.Errorf("read the patch: %w", err)
	}
	header, _, _ := bytes.Cut(text, []byte("\ndiff --git "))
	text = append(append(bytes.Clone(header), '\n'), out.Bytes()...)
	if err := os.WriteFile(file, text, 0o644); err != nil { //nolint:gosec // a file of the repository
		return false, fmt.Errorf("rewrite the patch: %w", err)
	}
	return true, nil
}

// The merge base is the file at the commit that last changed the patch.
func (p *patch) merge(ctx context.Context, current string, d *gitdiff.File) (string, error) {
	commit, err := git(ctx, p.root, "log", "-1", "--format=%H", "--", p.name)
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(commit))
	if id == "" {
		return "", conflict{errors.New("the patch does not apply, and was never committed: create it again")}
	}
	base, err := git(ctx, p.root, "show", id+":"+d.OldName)
	if err != nil {
		return "", err
	}
	changed, err := mutants.Apply(string(base), d)
	if err != nil {
		return "", conflict{fmt.Errorf("the patch did not apply when it was committed in %.12s: %w", id, err)}
	}
	temp, files, err := writeTemp("current", current, "base", string(base), "mutant", changed)
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	merged, err := git(ctx, temp, append([]string{"merge-file", "-p", "--diff3"}, files...)...)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() > 0 && exit.ExitCode() < 128:
		return "", conflict{fmt.Errorf("%s and the patch change the same lines:\n%s", d.OldName, conflictParts(string(merged)))}
	case err != nil:
		return "", err
	case string(merged) == current:
		return "", conflict{fmt.Errorf("%s already contains the change: check whether the rule still exists", d.OldName)}
	}
	return string(merged), nil
}

func conflictParts(merged string) string {
	var b strings.Builder
	inside := false
	for line := range strings.Lines(merged) {
		inside = inside || strings.HasPrefix(line, "<<<<<<< ")
		if inside {
			b.WriteString(line)
		}
		inside = inside && !strings.HasPrefix(line, ">>>>>>> ")
	}
	return b.String()
}

func gitDiff(ctx context.Context, name, old, changed string) ([]byte, error) {
	temp, files, err := writeTemp("a/"+name, old, "b/"+name, changed)
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	out, err := git(ctx, temp, append([]string{"diff", "--no-index", "--no-prefix", "--no-color", "--no-ext-diff"}, files...)...)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		err = nil
	}
	return out, err
}

func writeTemp(pairs ...string) (temp string, names []string, err error) {
	temp, err = os.MkdirTemp("", "mutants-")
	for i := 0; err == nil && i < len(pairs); i += 2 {
		file := filepath.Join(temp, pairs[i])
		names = append(names, pairs[i])
		if err = os.MkdirAll(filepath.Dir(file), 0o700); err == nil {
			err = os.WriteFile(file, []byte(pairs[i+1]), 0o600)
		}
	}
	if err != nil {
		_ = os.RemoveAll(temp)
		return "", nil, fmt.Errorf("write temporary files: %w", err)
	}
	return temp, names, nil
}

func git(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return out, fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return out, nil
}
