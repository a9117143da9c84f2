package pipelinecmd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/config"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// NewExplainCommand returns the command explain.
func NewExplainCommand(a *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain s3://bucket/key",
		Short: "Explain the state of an object and what happens next",
		Long: `Explain reports on one object. For each pipeline it prints the state and its
reason, the next action and its time, the wanted and the committed version, and the
recent history of events and attempts. If the ledger has no row for the object,
explain prints which pipelines match it and exits with 1.

Write the object plainly, or as "pawl ls" prints it.`,
		Example: `  pawl explain s3://photos/in/cat.jpg
  pawl explain 's3://photos/in/a picture + more.jpg' --json`,
		Args: app.SingleArg,
		RunE: func(cmd *cobra.Command, args []string) error { return runExplain(cmd.Context(), a, args[0]) },
	}
	addLedgerFlag(a, cmd)
	return cmd
}

type objectReport struct {
	Bucket    string      `json:"bucket"`
	Key       string      `json:"key"`
	KeyBase64 string      `json:"key_base64,omitempty"`
	VersionID string      `json:"version_id,omitempty"`
	Rows      []rowReport `json:"rows"`
	// OtherPipelines are configured and have no row.
	OtherPipelines []pipelineReport `json:"other_pipelines"`

	object event.Object
}

type rowReport struct {
	rowJSON
	Reason  string         `json:"reason"`
	Next    string         `json:"next"`
	Order   string         `json:"order,omitempty"`
	History []ledger.Entry `json:"history"` // newest first

	row *ledger.Row
}

type pipelineReport struct {
	Pipeline string `json:"pipeline"`
	Matches  bool   `json:"matches"`
	Reason   string `json:"reason"`
}

func runExplain(ctx context.Context, a *app.App, arg string) (err error) {
	v, err := openReadOnly(ctx, a)
	if err != nil {
		return err
	}
	defer v.closeInto(&err)
	object, rows, err := v.find(ctx, arg)
	if err != nil {
		return err
	}
	acc := buildReport(object, rows, v.config, time.Now())
	if err := printReport(a, acc); err != nil {
		return err
	}
	if len(rows) == 0 {
		return app.Failed(unknownObject(object), "")
	}
	return nil
}

func printReport(a *app.App, acc *objectReport) error {
	if a.JSON {
		return a.PrintJSON(acc)
	}
	_, err := fmt.Fprint(a.Out, acc.text(time.Now()))
	return err
}

func unknownObject(o event.Object) error { return fmt.Errorf("the ledger has no row for %s", o) }

func buildReport(o event.Object, rows []ledger.Row, c *config.Config, now time.Time) *objectReport {
	acc := &objectReport{Bucket: o.Bucket, VersionID: o.VersionID, object: o, Rows: []rowReport{}, OtherPipelines: []pipelineReport{}}
	acc.Key, acc.KeyBase64 = app.KeyJSON(o.Key)
	limit := c.Retry.Attempts
	if limit == 0 && len(c.Pipelines) > 0 {
		limit = ledger.DefaultPolicy().Attempts
	}
	for i := range rows {
		r := &rows[i]
		w := explanation{row: r, now: now, limit: limit, known: configured(c, r.Pipeline), unmatched: unmatchedReason(c, r)}
		acc.Rows = append(acc.Rows, rowReport{
			rowJSON: toJSON(r, now), Reason: w.reason(), Next: w.next(), Order: w.order(), History: slices.Clip(r.History), row: r,
		})
	}
	for i := range c.Pipelines {
		p := &c.Pipelines[i]
		if !slices.ContainsFunc(rows, func(r ledger.Row) bool { return r.Pipeline == p.Name }) {
			acc.OtherPipelines = append(acc.OtherPipelines, explainNoRow(p, o))
		}
	}
	return acc
}

// With --ledger, the configuration has no pipelines, and configured returns true.
func configured(c *config.Config, name string) bool {
	return len(c.Pipelines) == 0 || slices.ContainsFunc(c.Pipelines, func(p config.Pipeline) bool { return p.Name == name })
}

// unmatchedReason returns "" if the pipeline matches the object or is not configured.
func unmatchedReason(c *config.Config, r *ledger.Row) string {
	i := slices.IndexFunc(c.Pipelines, func(p config.Pipeline) bool { return p.Name == r.Pipeline })
	if i < 0 {
		return ""
	}
	if o := explainNoRow(&c.Pipelines[i], r.Object()); !o.Matches {
		return o.Reason
	}
	return ""
}

func explainNoRow(p *config.Pipeline, o event.Object) pipelineReport {
	out := pipelineReport{Pipeline: p.Name}
	hasSuffix := func(s string) bool { return strings.HasSuffix(o.Key, s) }
	switch {
	case p.Match.Bucket != o.Bucket:
		out.Reason = "matches only bucket " + event.Quote(p.Match.Bucket)
	case !strings.HasPrefix(o.Key, p.Match.Prefix):
		out.Reason = "matches only keys that begin with " + event.Quote(p.Match.Prefix)
	case len(p.Match.Suffix) > 0 && !slices.ContainsFunc(p.Match.Suffix, hasSuffix):
		out.Reason = "matches only keys that end with " + strings.Join(p.Match.Suffix, " or ")
	default:
		out.Matches = true
		out.Reason = "matches this object, but no notification has arrived in this ledger"
	}
	return out
}
