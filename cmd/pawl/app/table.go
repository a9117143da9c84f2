package app

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
)

// PlainTable suits grep and cut: only spaces separate columns.
var PlainTable = func() table.Style {
	s := table.StyleDefault
	s.Name = "plain"
	s.Options = table.OptionsNoBordersAndSeparators
	s.Box.PaddingLeft, s.Box.PaddingRight = "", "  "
	return s
}()

// TablePage rows are aligned at a time, which bounds memory.
const TablePage = 1000

// OneLine shortens s to 60 characters on a terminal, otherwise 200.
func OneLine(s string, width int) string {
	limit := 200
	if width > 0 {
		limit = 60
	}
	s = Printable(strings.Join(strings.Fields(s), " "))
	if r := []rune(s); len(r) > limit {
		s = string(r[:limit-1]) + "…"
	}
	return s
}

const objectWidth = 60

// Shorten removes the middle of an object on a terminal, because keys often differ at the end.
func Shorten(object string, width int) string {
	r := []rune(object)
	if width == 0 || len(r) <= objectWidth {
		return object
	}
	const head = objectWidth / 2
	return string(r[:head]) + "…" + string(r[len(r)-(objectWidth-head-1):])
}

// Printable escapes unprintable characters.
func Printable(s string) string {
	var out strings.Builder
	for _, r := range s {
		if !strconv.IsPrint(r) {
			q := strconv.QuoteRune(r)
			out.WriteString(q[1 : len(q)-1])
			continue
		}
		out.WriteRune(r)
	}
	return out.String()
}

// RelativeTime returns for example "in 3m" or "2h ago".
func RelativeTime(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	d := t.Sub(now)
	switch {
	case d > 0:
		return "in " + FormatDuration(d)
	case d > -time.Second:
		return "now"
	}
	return FormatDuration(-d) + " ago"
}

// FormatDuration returns d in its largest unit.
func FormatDuration(d time.Duration) string {
	switch {
	case d < time.Second:
		return "1s"
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}

// FormatTime returns t in UTC, to the second.
func FormatTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// PlainWriter returns a table without borders.
func PlainWriter(header ...any) table.Writer {
	t := table.NewWriter()
	t.SetStyle(PlainTable)
	t.SuppressTrailingSpaces()
	t.AppendHeader(header)
	return t
}
