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
		Short: "Say why an object is in its state, and what happens next",
		Long: `Explain tells the story of one object: for each pipeline its state and the reason
for it, what will happen next and when, what was heard last, what is done, and
the last verdicts and attempts. Of an object that the ledger knows nothing of, it
says which pipelines would take it, and ends with exit code 1.

The object is written as it is, or as "pawl ls" prints it.`,
		Example: `  pawl explain s3://photos/in/cat.jpg
  pawl explain 's3://photos/in/a picture + more.jpg' --json`,
		Args: app.SingleArg,
		RunE: func(cmd *cobra.Command, args []string) error { return runExplain(cmd.Context(), a, args[0]) },
	}
	addLedgerFlag(a, cmd)
	return cmd
}

// account is all there is to say of an object.
type account struct {
	Bucket    string  `json:"bucket"`
	Key       string  `json:"key"`
	KeyBase64 string  `json:"key_base64,omitempty"`
	VersionID string  `json:"version_id,omitempty"`
	Rows      []story `json:"rows"`
	// Others are the pipelines of the configuration that have no row.
	Others []other `json:"other_pipelines"`

	object event.Object
}

// story is what there is to say of a row.
type story struct {
	rowJSON
	Why     string         `json:"why"`
	Next    string         `json:"next"`
	Order   string         `json:"order,omitempty"`
	History []ledger.Entry `json:"history"` // newest first

	row *ledger.Row
}

type other struct {
	Pipeline string `json:"pipeline"`
	Matches  bool   `json:"matches"`
	Why      string `json:"why"`
}

func runExplain(ctx context.Context, a *app.App, arg string) (err error) {
	v, err := look(ctx, a)
	if err != nil {
		return err
	}
	defer v.end(&err)
	object, rows, err := v.find(ctx, arg)
	if err != nil {
		return err
	}
	acc := tell(object, rows, v.config, time.Now())
	if err := printAccount(a, acc); err != nil {
		return err
	}
	if len(rows) == 0 {
		return app.Failed(unheard(object), "")
	}
	return nil
}

func printAccount(a *app.App, acc *account) error {
	if a.JSON {
		return a.PrintJSON(acc)
	}
	_, err := fmt.Fprint(a.Out, acc.text(time.Now()))
	return err
}

// unheard is the error about an object without a row.
func unheard(o event.Object) error { return fmt.Errorf("the ledger knows nothing of %s", o) }

// tell explains an object by its rows.
func tell(o event.Object, rows []ledger.Row, c *config.Config, now time.Time) *account {
	acc := &account{Bucket: o.Bucket, VersionID: o.VersionID, object: o, Rows: []story{}, Others: []other{}}
	acc.Key, acc.KeyBase64 = app.KeyJSON(o.Key)
	limit := c.Retry.Attempts
	if limit == 0 && len(c.Pipelines) > 0 {
		limit = ledger.DefaultPolicy().Attempts
	}
	for i := range rows {
		r := &rows[i]
		w := words{row: r, now: now, limit: limit, known: configured(c, r.Pipeline), unmatched: unmatched(c, r)}
		acc.Rows = append(acc.Rows, story{
			rowJSON: toJSON(r, now), Why: w.why(), Next: w.next(), Order: w.disorder(), History: slices.Clip(r.History), row: r,
		})
	}
	for i := range c.Pipelines {
		p := &c.Pipelines[i]
		if !slices.ContainsFunc(rows, func(r ledger.Row) bool { return r.Pipeline == p.Name }) {
			acc.Others = append(acc.Others, noRow(p, o))
		}
	}
	return acc
}

// configured reports that the configuration has a pipeline of this name, or, having
// none at all, that it is unknown.
func configured(c *config.Config, name string) bool {
	return len(c.Pipelines) == 0 || slices.ContainsFunc(c.Pipelines, func(p config.Pipeline) bool { return p.Name == name })
}

// unmatched says why a pipeline of the configuration does not match a row's object,
// as it once did. Empty: it does, or there is no such pipeline.
func unmatched(c *config.Config, r *ledger.Row) string {
	i := slices.IndexFunc(c.Pipelines, func(p config.Pipeline) bool { return p.Name == r.Pipeline })
	if i < 0 {
		return ""
	}
	if o := noRow(&c.Pipelines[i], r.Object()); !o.Matches {
		return o.Why
	}
	return ""
}

// noRow says why a pipeline knows nothing of an object.
func noRow(p *config.Pipeline, o event.Object) other {
	out := other{Pipeline: p.Name}
	hasSuffix := func(s string) bool { return strings.HasSuffix(o.Key, s) }
	switch {
	case p.Match.Bucket != o.Bucket:
		out.Why = "it takes objects of bucket " + event.Quote(p.Match.Bucket)
	case !strings.HasPrefix(o.Key, p.Match.Prefix):
		out.Why = "it takes keys that begin with " + event.Quote(p.Match.Prefix)
	case len(p.Match.Suffix) > 0 && !slices.ContainsFunc(p.Match.Suffix, hasSuffix):
		out.Why = "it takes keys that end with " + strings.Join(p.Match.Suffix, " or ")
	default:
		out.Matches = true
		out.Why = "it would take this object, but has never heard of it: no notification came, or it came to another ledger"
	}
	return out
}
