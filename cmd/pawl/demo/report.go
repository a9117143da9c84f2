package demo

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/pawlhq/pawl/proof/rig"
)

// PipelineReport is the result of the demo of pipelines.
type PipelineReport struct {
	Seed          uint64       `json:"seed"`
	Seconds       float64      `json:"seconds"`
	Uploads       Changes      `json:"uploads"`
	Notifications rig.Messages `json:"notifications"`
	Workers       Workers      `json:"workers"`
	Effects       Effects      `json:"effects"`
	Outputs       Outputs      `json:"outputs"`
	Unsettled     []string     `json:"unsettled,omitempty"`
	OK            bool         `json:"ok"`
}

// Workers counts worker processes.
type Workers struct {
	Started int `json:"started"`
	Killed  int `json:"killed"`
	Held    int `json:"held"` // objects that the killed worker was processing
}

// Effects counts the effects of the workers.
type Effects struct {
	Committed  Changes `json:"committed"` // by workers to the output bucket
	Duplicates int     `json:"duplicates_refused"`
	Stale      int     `json:"stale_refused"`
	TakenOver  int     `json:"taken_over"` // from the killed worker
	Healed     int     `json:"healed"`     // objects whose last notification was dropped
}

func (r *PipelineReport) err() error {
	if r.OK {
		return nil
	}
	const most = 20
	list := append(append([]string{}, r.Outputs.Wrong...), r.Unsettled...)
	if more := len(list) - most; more > 0 {
		list = append(list[:most], fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("%w:\n  %s", ErrWrong, strings.Join(list, "\n  "))
}

// Print writes the report as a table.
func (r *PipelineReport) Print(w io.Writer) error { return printTable(w, r.sections(), r.summary()) }

func printTable(w io.Writer, sections []section, summary string) error {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Options.SeparateColumns = false
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 3, Align: text.AlignRight}})
	for i, section := range sections {
		if i > 0 {
			t.AppendSeparator()
		}
		name := section.name
		for _, l := range section.lines {
			t.AppendRow(table.Row{name, l.what, l.count})
			name = ""
		}
	}
	_, err := fmt.Fprintf(w, "\n%s\n\n%s\n", t.Render(), summary)
	return err
}

func (r *PipelineReport) summary() string {
	if !r.OK {
		return "Some checks failed."
	}
	return fmt.Sprintf("All checks passed: %d of %d outputs are the grayscale of their input, in %.1f s.",
		r.Outputs.Right, r.Outputs.Of, r.Seconds)
}

type section struct {
	name  string
	lines []line
}

type line struct {
	what  string
	count any
}

func (r *PipelineReport) sections() []section {
	n, e := &r.Notifications, &r.Effects
	return []section{
		{"Uploads", []line{
			{"put", r.Uploads.Put}, {"overwritten", r.Uploads.Overwritten}, {"removed", r.Uploads.Removed},
		}},
		{"Notifications", []line{
			{"sent", n.Sent}, {"delivered twice", n.Doubled}, {"out of order", n.OutOfOrder},
			{"delayed", n.Delayed}, {"dropped", n.Dropped}, {"sent again after no answer", n.Resent},
		}},
		{"Workers", []line{{"started", r.Workers.Started}, {"killed in mid-work", r.Workers.Killed}}},
		{"Effects", []line{
			{"committed", e.Committed.sum()}, {"duplicates refused", e.Duplicates}, {"stale refused", e.Stale},
			{"taken over", e.TakenOver}, {"healed", e.Healed},
		}},
		{"Outputs", []line{{"right", fmt.Sprintf("%d of %d", r.Outputs.Right, r.Outputs.Of)}}},
	}
}
