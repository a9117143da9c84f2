package app

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
)

// PlainTable separates columns by spaces alone, which survive grep and cut.
var PlainTable = func() table.Style {
	s := table.StyleDefault
	s.Name = "plain"
	s.Options = table.OptionsNoBordersAndSeparators
	s.Box.PaddingLeft, s.Box.PaddingRight = "", "  "
	return s
}()

// TablePage is how many rows a table lines up together: a ledger may be larger
// than memory.
const TablePage = 1000

// OneLine shortens an error to what fits beside an object.
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

// objectWidth is how much of an object a terminal's line has room for.
const objectWidth = 60

// Shorten leaves out the middle of a long object on a terminal: keys differ in
// their ends.
func Shorten(object string, width int) string {
	r := []rune(object)
	if width == 0 || len(r) <= objectWidth {
		return object
	}
	const head = objectWidth / 2
	return string(r[:head]) + "…" + string(r[len(r)-(objectWidth-head-1):])
}

// Printable escapes what does not belong on a terminal in a text that came from
// elsewhere: another program's error, say.
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

// RelativeTime prints a time as people count: "in 3m", "2h ago".
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

// FormatDuration prints a duration by its largest unit.
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

// FormatTime prints a time exactly.
func FormatTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// PlainWriter returns a table without borders, with the given heads.
func PlainWriter(header ...any) table.Writer {
	t := table.NewWriter()
	t.SetStyle(PlainTable)
	t.SuppressTrailingSpaces()
	t.AppendHeader(header)
	return t
}
