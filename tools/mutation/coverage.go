package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

type block struct {
	file       string
	start, end position
	statements int
	count      int
}

type position struct{ line, column int }

func (p position) compare(q position) int {
	return cmp.Or(cmp.Compare(p.line, q.line), cmp.Compare(p.column, q.column))
}

// widen extends each covered block back to the end of the previous one. Otherwise gremlins skips switch
// conditions and constants between functions, which Go's blocks do not include.
func widen(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("read the coverage: %w", err)
	}
	wide, err := widened(string(text))
	if err != nil {
		return err
	}
	if err := os.WriteFile(name, []byte(wide), 0o600); err != nil {
		return fmt.Errorf("write the coverage: %w", err)
	}
	return nil
}

func widened(profile string) (string, error) {
	mode, lines, _ := strings.Cut(profile, "\n")
	var blocks []block
	for line := range strings.Lines(lines) {
		var b block
		file, rest, ok := strings.Cut(line, ".go:")
		b.file = file + ".go"
		_, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d",
			&b.start.line, &b.start.column, &b.end.line, &b.end.column, &b.statements, &b.count)
		if !ok || err != nil {
			return "", errors.Join(fmt.Errorf("not a line of a coverage profile: %q", line), err)
		}
		blocks = append(blocks, b)
	}
	slices.SortFunc(blocks, func(a, b block) int {
		return cmp.Or(strings.Compare(a.file, b.file), a.start.compare(b.start), a.end.compare(b.end))
	})
	var wide strings.Builder
	fmt.Fprintln(&wide, mode)
	last := block{}
	for _, b := range blocks {
		if b.file != last.file {
			last = block{end: position{1, 1}}
		}
		start := b.start
		if b.count > 0 && last.end.compare(start) < 0 {
			start = last.end
		}
		fmt.Fprintf(&wide, "%s:%d.%d,%d.%d %d %d\n",
			b.file, start.line, start.column, b.end.line, b.end.column, b.statements, b.count)
		last = b
	}
	return wide.String(), nil
}
