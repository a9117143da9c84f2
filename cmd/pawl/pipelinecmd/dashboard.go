package pipelinecmd

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/audit"
	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/dashboard"
	"github.com/pawlhq/pawl/cmd/pawl/parts"
	"github.com/pawlhq/pawl/ledger"
)

// rowsForDashboard implements [dashboard.Ledger] and [dashboard.Operator].
type rowsForDashboard struct {
	*ledgerReader
	pipelines []pawl.Pipeline
}

func (d *rowsForDashboard) Overview(ctx context.Context, limit int) ([]dashboard.PipelineStatus, error) {
	return statuses(ctx, d.ledgerReader, time.Now(), limit)
}

func (d *rowsForDashboard) Page(ctx context.Context, f *dashboard.Filter, after dashboard.Position, examine, show int) (p dashboard.Page, err error) {
	o := rowFilter{pipeline: f.Pipeline, prefix: f.Prefix, failure: f.Error}
	if f.State != "" {
		o.states = []string{f.State}
	}
	sel, err := o.selection(time.Now())
	if err != nil {
		return p, err
	}
	if f.State == "" || f.State == string(ledger.StateDead) || f.State == string(ledger.StateFailed) {
		p.Command = redriveCommand(f)
	}
	examined := func(row *ledger.Row, due time.Time) (more bool) {
		p.Examined++
		p.Last = dashboard.Position{RowKey: row.RowKey, Due: due}
		if sel.matches(row) {
			p.Rows = append(p.Rows, *row)
		}
		p.More = p.Examined == examine || len(p.Rows) == show
		return !p.More
	}
	if f.ByDue() {
		rows, dues, err := d.Store.(*ledger.Rows).DueAfter(ctx, f.Pipeline, f.State == string(ledger.StateDead), after.RowKey, after.Due, examine)
		for i := range rows {
			if !examined(&rows[i], dues[i]) {
				break
			}
		}
		return p, err
	}
	for row, err := range d.candidates(ctx, sel, after.RowKey) {
		if err != nil || !examined(&row, time.Time{}) {
			return p, err
		}
	}
	return p, nil
}

func redriveCommand(f *dashboard.Filter) string {
	command := "pawl redrive --all"
	for _, flag := range []struct{ name, value string }{
		{"pipeline", f.Pipeline}, {"state", cmp.Or(f.State, "dead,failed")}, {"error", f.Error}, {"prefix", f.Prefix},
	} {
		if flag.value != "" {
			command += " --" + flag.name + " " + app.ShellWord(flag.value)
		}
	}
	return command
}

func (d *rowsForDashboard) Object(ctx context.Context, key ledger.RowKey) (*dashboard.Object, error) {
	rows, err := d.Load(ctx, []ledger.RowKey{key})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	report := buildReport(key.Object(), rows, d.config, time.Now()).Rows[0]
	o := &dashboard.Object{Row: rows[0], Reason: report.Reason, Next: report.Next, Order: report.Order}
	for i := range d.pipelines {
		if p := &d.pipelines[i]; p.Name == key.Pipeline && p.To != nil {
			o.Output = p.OutputOf(key).String()
		}
	}
	return o, nil
}

func (d *rowsForDashboard) Redrive(ctx context.Context, rows []ledger.Row, force bool) (string, error) {
	r := &redriver{ledger: ledger.New(d), selection: &rowSelection{}, redriveOptions: redriveOptions{force: force}, once: true}
	if !force {
		r.selection.states = []ledger.State{ledger.StateDead, ledger.StateFailed}
	}
	err := r.redrive(ctx, rows) // at most a page
	return r.String(), err
}

// dashboard returns the pages of "pawl run".
func (mon *monitor) dashboard() http.Handler {
	d := &rowsForDashboard{&ledgerReader{Store: ledger.NewRows(mon.m.Ledger), config: mon.m.Config}, mon.m.Parts.Pipelines}
	c := dashboard.Config{Ledger: d, Rates: &mon.rates, Logger: mon.m.Log, Tables: []dashboard.TablePage{
		{Path: "/sources", Title: "Sources", Note: "Deliveries since this process started. Returned ones will be redelivered. Refused ones found no room, and rejected requests were unauthorized or unreadable.", Table: mon.sourcesTable},
		{Path: "/audits", Title: "Audits", Note: "The last audits of all processes, newest first.", Table: d.auditsTable},
		{Path: "/configuration", Title: "Configuration", Note: "Of this process, without secrets.", Table: mon.configurationTable},
	}}
	if mon.m.Config.Admin.Token.Reveal() != "" {
		c.Operator = d
	}
	return dashboard.Handler(c)
}

func (mon *monitor) sourcesTable(context.Context) (t dashboard.Table, err error) {
	t.Head = []string{"Source", "Address", "Events", "Acknowledged", "Returned", "Refused", "Rejected", "Last delivery"}
	for i, name := range app.SourceNames(mon.m.Config) {
		v, err := mon.SourceValues(name)
		if err != nil {
			return t, err
		}
		n := func(keys ...string) string {
			sum := 0.0
			for _, key := range keys {
				sum += v[key]
			}
			return humanize.Comma(int64(sum))
		}
		last := "none"
		if v["events_total"] > 0 {
			last = app.RelativeTime(time.Unix(int64(v["last_delivery_timestamp_seconds"]), 0), time.Now())
		}
		t.Rows = append(t.Rows, []string{
			name, mon.m.Config.Sources[i].Config.(parts.Source).Describe(), n("events_total"),
			n("deliveries_total acknowledged"), n("deliveries_total returned"), n("deliveries_total refused"),
			n("rejected_total unauthorized", "rejected_total unreadable"), last,
		})
	}
	return t, nil
}

func (d *rowsForDashboard) auditsTable(ctx context.Context) (t dashboard.Table, err error) {
	t.Head = []string{"Started", "Duration", "By", "Prefix", "Pipeline", "Objects", "Findings"}
	rows := d.Store.(*ledger.Rows)
	reports, err := audit.StoredReports(ctx, rows)
	if err != nil {
		return t, err
	}
	unfinished, err := audit.Unfinished(ctx, rows)
	if err != nil {
		return t, err
	}
	if unfinished != nil {
		reports = slices.Insert(reports, 0, *unfinished)
	}
	for i := range reports {
		r := &reports[i]
		took := "running or interrupted"
		if !r.Ended.IsZero() {
			took = r.Ended.Sub(r.Started).Round(time.Millisecond).String()
		}
		for j := range r.Pipelines {
			p := &r.Pipelines[j]
			t.Rows = append(t.Rows, []string{app.FormatTime(r.Started), took, r.By, r.Prefix, p.Name, humanize.Comma(p.Listed), findings(&p.Counts)})
		}
	}
	return t, nil
}

func findings(c *audit.Counts) string {
	var all []string
	for _, f := range []struct {
		n    int64
		what string
	}{
		{c.LostCreations, "lost creations"}, {c.LostOverwrites, "lost overwrites"}, {c.LostRemovals, "lost removals"},
		{c.NoOutput, "outputs missing"}, {c.NoInput, "outputs without object"}, {c.Repaired, "scheduled for repair"},
		{c.Withheld, "removals withheld"}, {c.Contradicted, "contradictions of listing and HEAD"}, {c.Redriven, "redriven"},
		{c.Dead, "dead"}, {c.Failed, "failed"}, {c.Unreadable, "unreadable"}, {c.Inaccessible, "inaccessible"},
	} {
		if f.n > 0 {
			all = append(all, fmt.Sprintf("%d %s", f.n, f.what))
		}
	}
	return cmp.Or(strings.Join(all, ", "), "none")
}

func (mon *monitor) configurationTable(context.Context) (t dashboard.Table, err error) {
	c, effective := mon.m.Config, mon.m.Parts.WithDefaults()
	t.Head = []string{"Field", "Value"}
	add := func(field string, value any) {
		switch value {
		case "":
			value = "none"
		case time.Duration(0):
			value = "never"
		}
		t.Rows = append(t.Rows, []string{field, fmt.Sprint(value)})
	}
	add("file", c.Name())
	add("ledger", c.Ledger.Config.(parts.Ledger).Describe())
	add("objects", storeAddress(mon.m))
	for i := range effective.Pipelines {
		p := &effective.Pipelines[i]
		field := fmt.Sprintf("pipelines[%d].", i)
		add(field+"name", p.Name)
		add(field+"match", app.FormatPrefix(p.Match.Bucket, p.Match.Prefix)+strings.Join(append([]string{""}, p.Match.Suffix...), " *"))
		add(field+"action", c.Pipelines[i].Action.Kind)
		if p.To != nil {
			add(field+"to", app.FormatPrefix(p.To.Bucket, p.To.Prefix))
		}
	}
	for i, s := range c.Sources {
		add(fmt.Sprintf("sources[%d].%s", i, s.Kind), s.Config.(parts.Source).Describe())
		add(fmt.Sprintf("sources[%d].silent_after", i), time.Duration(s.SilentAfter))
	}
	for i := range c.Archives {
		a := &c.Archives[i]
		add(fmt.Sprintf("archives[%d]", i), a.Name+": "+a.Kinesis.Stream+" to "+app.FormatPrefix(a.To.Bucket, a.To.Prefix))
	}
	if mon.alerts == nil {
		add("alerts", "")
	} else {
		u, _ := url.Parse(mon.alerts.URL) // valid; its path and query may be secret
		add("alerts.url", u.Host)
		add("alerts.oldest_after", mon.alerts.OldestAfter)
	}
	for _, f := range []struct {
		name  string
		value any
	}{
		{"admin.listen", mon.admin}, {"admin.token", map[bool]string{true: "set"}[c.Admin.Token.Reveal() != ""]},
		{"concurrency", effective.Concurrency}, {"max_backlog_events", effective.MaxBacklogEvents}, {"max_bytes", humanize.IBytes(uint64(effective.MaxBytes))},
		{"lease.ttl", effective.Lease.TTL}, {"lease.skew", effective.Lease.Skew}, {"lease.late_write_window", effective.Lease.LateWriteWindow},
		{"retry.attempts", effective.Retry.Attempts}, {"retry.base", effective.Retry.Base}, {"retry.max", effective.Retry.Max}, {"retry.outage", effective.Retry.Outage},
		{"audit.every", effective.Audit.Every}, {"audit.settle_window", effective.Audit.SettleWindow}, {"audit.row_retention", effective.Audit.RowRetention},
		{"audit.max_delay", effective.Audit.MaxDelay}, {"audit.purge", cmp.Or(c.Audit.Purge, "removed")},
		{"sweep_interval", effective.SweepInterval}, {"shutdown_timeout", effective.ShutdownTimeout},
	} {
		add(f.name, f.value)
	}
	return t, nil
}
