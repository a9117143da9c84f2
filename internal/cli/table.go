package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/pawlhq/pawl/ledger"
)

// rowPrinter prints rows. end is called after the last.
type rowPrinter interface {
	row(r *ledger.Row) error
	end() error
}

// rowPrinter returns the printer for people or for programs.
func (a *app) rowPrinter(now time.Time) rowPrinter {
	if a.json {
		return &jsonRows{a: a, now: now}
	}
	t := table.NewWriter()
	t.SetOutputMirror(a.Out)
	t.SetStyle(plainTable)
	t.SuppressTrailingSpaces()
	t.AppendHeader(table.Row{"STATE", "PIPELINE", "OBJECT", "TRIES", "NEXT", "CHANGED", "LAST ERROR"})
	return &tableRows{table: t, now: now, width: terminalWidth(a.Out)}
}

type jsonRows struct {
	a   *app
	now time.Time
}

func (p *jsonRows) row(r *ledger.Row) error { return p.a.printJSON(toJSON(r, p.now)) }
func (p *jsonRows) end() error              { return nil }

// plainTable separates columns by spaces alone, which survive grep and cut.
var plainTable = func() table.Style {
	s := table.StyleDefault
	s.Name = "plain"
	s.Options = table.OptionsNoBordersAndSeparators
	s.Box.PaddingLeft, s.Box.PaddingRight = "", "  "
	return s
}()

// tablePage is how many rows a table lines up together: a ledger may be larger
// than memory.
const tablePage = 1000

type tableRows struct {
	table table.Writer
	now   time.Time
	width int
	held  int
}

func (p *tableRows) row(r *ledger.Row) error {
	p.table.AppendRow(table.Row{
		r.State(p.now), r.Pipeline, shorten(r.Object().String(), p.width), strconv.Itoa(r.Attempts),
		relative(r.Due(), p.now), relative(r.UpdatedAt, p.now), oneLine(r.LastError, p.width),
	})
	if p.held++; p.held == tablePage {
		p.flush()
	}
	return nil
}

func (p *tableRows) flush() {
	p.table.Render()
	p.table.ResetHeaders()
	p.table.ResetRows()
	p.held = 0
}

func (p *tableRows) end() error {
	if p.held > 0 {
		p.flush()
	}
	return nil
}

// oneLine shortens an error to what fits beside an object.
func oneLine(s string, width int) string {
	limit := 200
	if width > 0 {
		limit = 60
	}
	s = visible(strings.Join(strings.Fields(s), " "))
	if r := []rune(s); len(r) > limit {
		s = string(r[:limit-1]) + "…"
	}
	return s
}

// objectWidth is how much of an object a terminal's line has room for.
const objectWidth = 60

// shorten leaves out the middle of a long object on a terminal: keys differ in
// their ends.
func shorten(object string, width int) string {
	r := []rune(object)
	if width == 0 || len(r) <= objectWidth {
		return object
	}
	const head = objectWidth / 2
	return string(r[:head]) + "…" + string(r[len(r)-(objectWidth-head-1):])
}

// visible escapes what does not belong on a terminal in a text that came from
// elsewhere: another program's error, say.
func visible(s string) string {
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

// relative prints a time as people count: "in 3m", "2h ago".
func relative(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	d := t.Sub(now)
	switch {
	case d > 0:
		return "in " + span(d)
	case d > -time.Second:
		return "now"
	}
	return span(-d) + " ago"
}

// span prints a duration by its largest unit.
func span(d time.Duration) string {
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
