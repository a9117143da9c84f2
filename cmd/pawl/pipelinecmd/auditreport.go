package pipelinecmd

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/schollz/progressbar/v3"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/audit"
	"github.com/pawlhq/pawl/cmd/pawl/app"
)

// auditProgress shows a bar on a terminal, and otherwise writes log lines.
type auditProgress struct {
	log       *slog.Logger
	bar       *app.Progress
	expect    int64 // -1 if unknown
	started   bool
	resumedAt int64 // objects listed before the audit was resumed
	startTime time.Time
	last      time.Time
}

func newAuditProgress(log *slog.Logger, bar *app.Progress, expect int64) *auditProgress {
	if bar.Shown {
		bar.Draw(expect, progressbar.OptionShowIts(), progressbar.OptionSetItsString("objects"), progressbar.OptionThrottle(100*time.Millisecond))
	}
	return &auditProgress{log: log, bar: bar, expect: expect, startTime: time.Now(), last: time.Now()}
}

func (w *auditProgress) update(r *audit.Report) {
	total := r.Total()
	if !w.started {
		w.started, w.resumedAt = true, total.Listed
	}
	if w.bar.Shown {
		drawAudit(w.bar, &total, w.expect)
		return
	}
	if time.Since(w.last) < app.LogInterval {
		return
	}
	w.last = time.Now()
	rate := float64(total.Listed-w.resumedAt) / time.Since(w.startTime).Seconds()
	args := []any{"listed", total.Listed, "rows", total.Rows, "found", total.Found(), "per_second", int64(rate)}
	if left := w.expect - total.Listed; left > 0 && rate > 0 {
		args = append(args, "remaining", time.Duration(float64(left)/rate*float64(time.Second)).Round(time.Second))
	}
	w.log.Info("auditing", args...)
}

func drawAudit(p *app.Progress, now *audit.Counts, expect int64) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.Bar.Describe(fmt.Sprintf("%d objects, %d found", now.Listed, now.Found()))
	at := now.Listed
	if expect > 0 {
		at = min(at, expect-1) // only End completes the bar
	}
	_ = p.Bar.Set64(at) // harmless
}

type auditJSON struct {
	*pawl.AuditReport
	Complete bool         `json:"complete"` // false if the next audit resumes this one
	Seconds  float64      `json:"seconds"`
	Total    audit.Counts `json:"total"`
}

func printAudit(a *app.App, r *pawl.AuditReport, failed error) error {
	if r.Started.IsZero() {
		return nil // it did not start
	}
	total, took := r.Total(), r.Ended.Sub(r.Started)
	if a.JSON {
		return a.PrintJSON(auditJSON{r, failed == nil, took.Round(time.Millisecond).Seconds(), total})
	}
	_, err := fmt.Fprint(a.Out, auditText(r, &total, failed == nil))
	return err
}

func auditText(r *pawl.AuditReport, total *audit.Counts, complete bool) string {
	var text strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) }
	what := "audited"
	switch {
	case !complete:
		what = "interrupted: audited"
	case r.DryRun:
		what = "dry run: audited"
	}
	line("%s %s objects and %s rows in %s (source: %s, key ranges: %s)", what, humanize.Comma(total.Listed), humanize.Comma(total.Rows),
		r.Ended.Sub(r.Started).Round(time.Millisecond), r.Listing, humanize.Comma(int64(r.Ranges)))
	if r.Resumed > 0 {
		line("  started at %s, resumed %d times: the next audit finds later losses among objects compared before the interruption",
			r.Started.Format(time.RFC3339), r.Resumed)
	}
	line("  lost: creations %d, overwrites %d, removals %d", total.LostCreations, total.LostOverwrites, total.LostRemovals)
	if r.Outputs {
		line("  outputs: missing %d, without object %d, not from this pipeline %d", total.NoOutput, total.NoInput, total.Foreign)
	}
	if total.Repaired > 0 {
		line("  scheduled for repair: %d", total.Repaired)
	}
	if total.Withheld > 0 {
		line("  withheld: %s removals, too many for %s rows of created objects: check the endpoint and the bucket; if the removals are right, run pawl audit --allow-removals",
			humanize.Comma(total.Withheld), humanize.Comma(total.Created))
	}
	for _, c := range []struct {
		n    int64
		what string
	}{
		{total.Contradicted, "objects for which listing and HEAD disagree: check for a cache or proxy in front of the store"},
		{total.TooRecent, "objects differ but changed within the settle window of " + r.SettleWindow + ": ignored"},
		{total.PossiblyPurged, "objects without a row, older than the purge watermark: ignored"},
		{total.Redriven, "dead or failed rows redriven"},
		{total.Dead - min(total.Dead, total.Redriven), "dead rows: pawl ls --state dead"},
		{total.Failed, "failed rows: workers retry them"},
		{total.Unreadable, "unreadable rows: pawl ls --state unreadable"},
		{total.Inaccessible, "inaccessible objects"},
	} {
		if c.n > 0 {
			line("  %d %s", c.n, c.what)
		}
	}
	for _, e := range r.Examples {
		object := e.Object
		if e.Output != "" {
			object = e.Output + " of " + e.Object
		}
		line("  %s: %s %s", e.What, e.Pipeline, object)
	}
	return text.String()
}

func printAudits(a *app.App, all []pawl.AuditReport) error {
	if a.JSON {
		for i := range all {
			r := &all[i]
			if err := a.PrintJSON(auditJSON{r, true, r.Ended.Sub(r.Started).Round(time.Millisecond).Seconds(), r.Total()}); err != nil {
				return err
			}
		}
		return nil
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(a.Out, "no completed audit of this ledger")
		return err
	}
	t := table.NewWriter()
	t.SetOutputMirror(a.Out)
	t.SetStyle(app.PlainTable)
	t.SuppressTrailingSpaces()
	t.AppendHeader(table.Row{"ENDED", "DURATION", "BY", "PREFIX", "OBJECTS", "LOST", "OUTPUTS", "REPAIRED", "DEAD", "FAILED"})
	for i := range all {
		r, total := &all[i], all[i].Total()
		t.AppendRow(table.Row{
			r.Ended.Format(time.RFC3339), r.Ended.Sub(r.Started).Round(time.Second), r.By, r.Prefix, total.Listed, total.Lost(),
			total.NoOutput + total.NoInput, total.Repaired, total.Dead, total.Failed,
		})
	}
	t.Render()
	return nil
}
