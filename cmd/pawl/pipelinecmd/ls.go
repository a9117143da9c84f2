package pipelinecmd

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/ledger"
)

type lsOptions struct {
	rowFilter
	limit int
	after string
	count bool
}

// NewLsCommand returns the command ls.
func NewLsCommand(a *app.App) *cobra.Command {
	o := &lsOptions{}
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the ledger's rows: one for each object and pipeline",
		Long: `List prints the ledger's rows in order of pipeline, bucket and key. The ledger has
one row for each object and pipeline. You can list while workers run.

States: settled (done), pending (waits for a worker), processing, stuck (its
worker's lease expired, another worker takes over), failed (will be retried), dead
(will not be retried: see "pawl redrive"), unreadable (a newer version of Pawl wrote
the row).

With --json each line is one JSON object: pipeline, bucket, key, key_base64 (the
exact key, if it is not UTF-8), version_id, state, due (time of the next action),
want and have (kind, sequencer, generation, version_id, etag, mod_time, size), lease
(owner, until, live), fence, doubt, forced, dead, attempts, retry_at, last_error,
verify_at, event_time, disorder (number of ignored events with a newer time),
created_at, updated_at. Times are RFC 3339, sizes are bytes, and fields without a
value are omitted.`,
		Example: `  pawl ls --state dead,failed
  pawl ls --ledger sqlite:/srv/app/pawl.db
  pawl ls --pipeline grayscale --prefix s3://photos/in/2026/
  pawl ls --count --older 24h --error 'access denied'
  pawl ls --limit 0 --json | jq -r 'select(.attempts > 3) | .key'`,
		Args: app.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runLs(cmd.Context(), a, o) },
	}
	o.register(a, cmd, "")
	flags := cmd.Flags()
	flags.IntVar(&o.limit, "limit", 100, "maximum number of `lines`; 0 means no limit")
	flags.StringVar(&o.after, "after", "", "start after this `row`, as printed below the previous page")
	flags.BoolVar(&o.count, "count", false, "print the number of rows per pipeline and state")
	return cmd
}

func runLs(ctx context.Context, a *app.App, o *lsOptions) (err error) {
	sel, err := o.selection(time.Now())
	if err != nil {
		return err
	}
	after, err := parseAfter(o.after)
	if err != nil {
		return err
	}
	if o.limit < 0 {
		return app.Usage("--limit %d: want a number of lines, or 0 for no limit", o.limit)
	}
	v, err := openReadOnly(ctx, a)
	if err != nil {
		return err
	}
	defer v.closeInto(&err)
	if err := v.checkPipeline(ctx, o.pipeline); err != nil {
		return err
	}
	if o.count {
		c, err := v.count(ctx, sel)
		if err != nil {
			return err
		}
		return printCount(a, c)
	}
	return printRows(ctx, a, v, sel, after, o.limit)
}

// If more rows follow, printRows prints the flags for the next page.
func printRows(ctx context.Context, a *app.App, v *ledgerReader, sel *rowSelection, after ledger.RowKey, limit int) error {
	print := newRowPrinter(a, sel.now)
	printed, more := 0, false
	for row, err := range v.selected(ctx, sel, after) {
		if err != nil {
			return err
		}
		if limit > 0 && printed == limit {
			more = true
			break
		}
		printed, after = printed+1, row.RowKey
		if err := print.row(&row); err != nil {
			return err
		}
	}
	if err := print.end(); err != nil {
		return err
	}
	switch {
	case printed == 0 && !a.JSON:
		fmt.Fprintln(a.Err, "pawl: no matching rows")
	case more:
		fmt.Fprintf(a.Err, "pawl: more than %d rows match: print all with --limit 0, or the next page with --after %s\n", limit, app.ShellWord(rowName(after)))
	}
	return nil
}

func printCount(a *app.App, c rowCount) error {
	if a.JSON {
		return a.PrintJSON(c)
	}
	_, err := fmt.Fprint(a.Out, c)
	return err
}

// rowName formats a key for --after: pipeline/s3://bucket/key.
func rowName(k ledger.RowKey) string { return k.Pipeline + "/" + k.Object().String() }

// An empty name is the zero key.
func parseAfter(name string) (ledger.RowKey, error) {
	if name == "" {
		return ledger.RowKey{}, nil
	}
	pipeline, object, _ := strings.Cut(name, "/")
	all := app.AppendPrinted(nil, strings.TrimSuffix(strings.TrimPrefix(object, `"`), `"`))
	if len(all) == 0 {
		return ledger.RowKey{}, app.Usage("--after %s: want pipeline/s3://bucket/key, as ls prints it below a page", name)
	}
	o := all[0]
	return ledger.RowKey{Pipeline: pipeline, Bucket: o.Bucket, Key: o.Key, VersionID: o.VersionID}, nil
}

// The caller calls end after the last row.
type rowPrinter interface {
	row(r *ledger.Row) error
	end() error
}

func newRowPrinter(a *app.App, now time.Time) rowPrinter {
	if a.JSON {
		return &jsonRows{a: a, now: now}
	}
	t := table.NewWriter()
	t.SetOutputMirror(a.Out)
	t.SetStyle(app.PlainTable)
	t.SuppressTrailingSpaces()
	t.AppendHeader(table.Row{"STATE", "PIPELINE", "OBJECT", "ATTEMPTS", "NEXT RUN", "UPDATED", "LAST ERROR"})
	return &tableRows{table: t, now: now, width: app.TerminalWidth(a.Out)}
}

type jsonRows struct {
	a   *app.App
	now time.Time
}

func (p *jsonRows) row(r *ledger.Row) error { return p.a.PrintJSON(toJSON(r, p.now)) }

func (p *jsonRows) end() error { return nil }

type tableRows struct {
	table    table.Writer
	now      time.Time
	width    int
	buffered int
}

func (p *tableRows) row(r *ledger.Row) error {
	p.table.AppendRow(table.Row{
		r.State(p.now), r.Pipeline, app.Shorten(r.Object().String(), p.width), strconv.Itoa(r.Attempts),
		app.RelativeTime(r.Due(), p.now), app.RelativeTime(r.UpdatedAt, p.now), app.OneLine(r.LastError, p.width),
	})
	if p.buffered++; p.buffered == app.TablePage {
		p.flush()
	}
	return nil
}

func (p *tableRows) flush() {
	p.table.Render()
	p.table.ResetHeaders()
	p.table.ResetRows()
	p.buffered = 0
}

func (p *tableRows) end() error {
	if p.buffered > 0 {
		p.flush()
	}
	return nil
}
