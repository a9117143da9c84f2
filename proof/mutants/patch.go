package mutants

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/pawlhq/pawl/proof/sim"
)

// Read returns the mutants of the module in dir, sorted by name.
func Read(dir fs.FS) ([]Mutant, error) {
	var names []string
	for _, folder := range []string{"proof/mutants/testdata", "*/testdata/mutants"} {
		some, err := fs.Glob(dir, folder+"/*.patch")
		if err != nil {
			return nil, fmt.Errorf("list the mutants: %w", err)
		}
		names = append(names, some...)
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(path.Base(a), path.Base(b)) })
	var all []Mutant
	for _, name := range names {
		text, err := fs.ReadFile(dir, name)
		if err != nil {
			return nil, fmt.Errorf("read a mutant: %w", err)
		}
		m, err := parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		m.Name, m.File = strings.TrimSuffix(path.Base(name), ".patch"), name
		all = append(all, *m)
	}
	return all, nil
}

func parse(text string) (*Mutant, error) {
	diffs, header, err := gitdiff.Parse(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("parse the diff: %w", err)
	}
	m := &Mutant{Diffs: diffs, Test: &Test{}}
	for field, value := range fields(header) {
		if err := m.set(field, value); err != nil {
			return nil, fmt.Errorf("header field %q: %w", field, err)
		}
	}
	return m, m.check()
}

// An indented line continues the previous value.
func fields(header string) map[string]string {
	values, field := map[string]string{}, ""
	for line := range strings.Lines(header) {
		if key, value, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(line, " ") {
			field = key
			values[key] = strings.TrimSpace(value)
		} else if rest := strings.TrimSpace(line); rest != "" {
			values[field] += " " + rest
		}
	}
	return values
}

func (m *Mutant) set(field, value string) (err error) {
	switch field {
	case "Why":
		m.Why = value
	case "From":
		m.From = value
	case "Budget":
		m.Budget, err = strconv.ParseUint(value, 10, 64)
	case "Test":
		m.Test.Args, err = splitArgs(value)
	case "Says":
		m.Test.Says = value
		_, err = regexp.Compile(value)
	case "Invariant":
		m.Test.Invariant, err = invariant(value)
	default:
		err = errors.New("the fields are Why, From, Budget, Test, Says and Invariant")
	}
	return err
}

// check drops a Test without arguments.
func (m *Mutant) check() error {
	test := *m.Test
	if test.Args == nil {
		m.Test = nil
	}
	switch {
	case len(m.Diffs) == 0:
		return errors.New("the diff is missing: make one with git diff")
	case m.Why == "":
		return errors.New("header field Why is missing")
	case (m.Budget > 0) == (m.Test != nil):
		return errors.New("the header needs either Budget or Test")
	case (m.Test != nil) != (test.Says != ""):
		return errors.New("header fields Test and Says belong together: without Says a build failure passes for a failing test")
	case m.Test == nil && test.Invariant != 0:
		return errors.New("header field Invariant needs a Test")
	}
	return nil
}

// splitArgs splits at spaces, except within single quotes.
func splitArgs(s string) ([]string, error) {
	if strings.Count(s, "'")%2 != 0 {
		return nil, errors.New("a single quote is not closed")
	}
	quoted := false
	args := strings.FieldsFunc(s, func(r rune) bool {
		if r == '\'' {
			quoted = !quoted
		}
		return r == ' ' && !quoted
	})
	for i, arg := range args {
		args[i] = strings.ReplaceAll(arg, "'", "")
	}
	return args, nil
}

func invariant(name string) (sim.Invariant, error) {
	for i := sim.I1; i <= sim.I14; i++ {
		if i.String() == name {
			return i, nil
		}
	}
	return 0, fmt.Errorf("unknown invariant %q", name)
}

// Apply applies a diff. If the lines of a hunk have moved, their context must occur exactly once.
func Apply(text string, d *gitdiff.File) (string, error) {
	lines := slices.Collect(strings.Lines(text))
	var out strings.Builder
	next, shift := 0, 0 // next line of text; distance by which the last hunk has moved
	for _, hunk := range d.TextFragments {
		var before, after []string
		for _, line := range hunk.Lines {
			if line.Old() {
				before = append(before, line.Line)
			}
			if line.New() {
				after = append(after, line.Line)
			}
		}
		stated := int(hunk.OldPosition) - 1
		at, err := locate(lines, before, next, stated+shift)
		if err != nil {
			return "", fmt.Errorf("%s, hunk @@ -%d @@: %w", d.OldName, hunk.OldPosition, err)
		}
		shift = at - stated
		out.WriteString(strings.Join(lines[next:at], ""))
		out.WriteString(strings.Join(after, ""))
		next = at + len(before)
	}
	out.WriteString(strings.Join(lines[next:], ""))
	return out.String(), nil
}

// locate returns the expected index of want, or its only other index.
func locate(lines, want []string, from, expected int) (int, error) {
	var found []int
	for i := from; i+len(want) <= len(lines); i++ {
		if slices.Equal(lines[i:i+len(want)], want) {
			found = append(found, i)
		}
	}
	switch {
	case slices.Contains(found, expected):
		return expected, nil
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0:
		return 0, errors.New("its context and deleted lines are no longer in the file")
	}
	return 0, fmt.Errorf("its context and deleted lines occur %d times in the file, and not at the stated line", len(found))
}
