package pipelinecmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/config"
	"github.com/pawlhq/pawl/cmd/pawl/parts"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/store"
)

// redriveOptions are the flags of redrive.
type redriveOptions struct {
	rowFilter
	force  bool
	reset  bool
	drop   bool
	all    bool
	dryRun bool
	yes    bool
}

// NewRedriveCommand returns the command redrive.
func NewRedriveCommand(a *app.App) *cobra.Command {
	o := &redriveOptions{}
	cmd := &cobra.Command{
		Use:   "redrive [s3://bucket/key | --all]",
		Short: "Try dead or failing objects again",
		Long: `Redrive gives objects fresh attempts: dead ones are tried again, and failed ones
at once. It works while workers run; without one, the next "pawl run" tries. The ledger has
a row for each object and pipeline.

--force demands the effect again even where it is committed, of objects in the
states named by --state, or in any state where the object itself is named.

--reset-order drops the sequencers of objects in these states as well: where a
forged notification, or a store whose clock was put back, has left one that no
real change outranks. "pawl explain" and the log tell of it. The object is looked
at, and the next notification counts. One that a worker holds is left alone.

--drop removes open objects that their pipeline no longer matches, since it was
edited, from the ledger. Until then they rest. All others are left alone.

With --all the other flags select rows, as those of "pawl ls" do. Before more than
100 rows change it asks, or where nobody is there to answer it wants --yes.`,
		Example: `  pawl redrive s3://photos/in/cat.jpg
  pawl redrive --all
  pawl redrive --all --pipeline load --state dead,failed
  pawl redrive --all --error 'access denied' --newer 24h --dry-run
  pawl redrive --reset-order s3://photos/in/cat.jpg
  pawl redrive --drop --all --pipeline load
  pawl redrive --force --pipeline grayscale s3://photos/in/cat.jpg`,
		Args: cobra.ArbitraryArgs, // check counts them
		RunE: func(cmd *cobra.Command, args []string) error { return runRedrive(cmd.Context(), a, o, args) },
	}
	o.register(a, cmd, " (default dead with --all; dead,failed for an object)")
	flags := cmd.Flags()
	flags.BoolVar(&o.force, "force", false, "demand the effect again even where it is committed")
	flags.BoolVar(&o.reset, "reset-order", false, "drop the sequencers, so that the next notification counts")
	flags.BoolVar(&o.drop, "drop", false, "remove open objects that their pipeline no longer matches")
	flags.BoolVar(&o.all, "all", false, "every selected object")
	flags.BoolVar(&o.dryRun, "dry-run", false, "only count what --all would redrive")
	flags.BoolVar(&o.yes, "yes", false, "do not ask before many rows change")
	return cmd
}

func runRedrive(ctx context.Context, a *app.App, o *redriveOptions, args []string) (err error) {
	if err := o.check(args); err != nil {
		return err
	}
	sel, err := o.selection(time.Now())
	if err != nil {
		return err
	}
	open := parts.Ledger.Open
	if o.dryRun {
		open = parts.Ledger.OpenReadOnly
	}
	v, err := openLedger(ctx, a, open)
	if err != nil {
		return err
	}
	defer v.closeInto(&err)
	if err := v.checkPipeline(ctx, o.pipeline); err != nil {
		return err
	}
	sel.also = o.allowed(v.config, sel)
	d := &redriver{ledger: ledger.New(v), selection: sel, redriveOptions: *o}
	if !o.all {
		err = d.one(ctx, v, args[0])
	} else if more, asked := o.ask(ctx, a, v, sel); asked != nil || !more {
		return asked
	} else {
		err = d.all(ctx, v)
	}
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(d.count)
	}
	_, err = fmt.Fprintln(a.Out, d)
	return err
}

// check refuses flags that do not go together, and sets the default states.
func (o *redriveOptions) check(args []string) error {
	switch {
	case len(args) > 1, o.all == (len(args) == 1):
		return app.Usage("name one object, or --all")
	case !o.all && (o.narrows() || o.dryRun):
		return app.Usage("--prefix, --older, --newer, --error and --dry-run select among all objects: say --all and name no object")
	case o.drop && (o.force || o.reset):
		return app.Usage("--drop drops: leave --force and --reset-order out")
	case len(o.states) > 0:
	case o.all && !o.drop:
		o.states = []string{string(ledger.StateDead)}
	case !o.force && !o.reset && !o.drop:
		o.states = []string{string(ledger.StateDead), string(ledger.StateFailed)}
	}
	return nil
}

// allowed returns what more must be true of a row.
func (o *redriveOptions) allowed(c *config.Config, sel *rowSelection) func(r *ledger.Row) bool {
	switch {
	case o.drop:
		return func(r *ledger.Row) bool {
			return r.Unreadable == nil && (!r.Settled() || !r.VerifyAt.IsZero()) && !r.Live(sel.now) && unmatchedReason(c, r) != ""
		}
	case o.reset:
		return func(r *ledger.Row) bool { return !r.Held() }
	}
	return nil
}

// confirmAbove is how many rows change without a question.
const confirmAbove = 100

// ask reports whether the selected rows are to be redriven.
func (o *redriveOptions) ask(ctx context.Context, a *app.App, v *ledgerReader, sel *rowSelection) (bool, error) {
	if o.yes && !o.dryRun {
		return true, nil
	}
	c, err := v.count(ctx, sel)
	switch {
	case err != nil:
		return false, err
	case o.dryRun:
		return false, printCount(a, c)
	case c.total() <= confirmAbove:
		return true, nil
	}
	what := "Redrive"
	if o.drop {
		what = "Drop"
	}
	return a.Confirm(ctx, c.String()+fmt.Sprintf("%s %d rows?", what, c.total()))
}

// redriven counts what redrive did.
type redriven struct {
	Redriven int `json:"redriven"`   // rows: one for each object and pipeline
	Dropped  int `json:"dropped"`    // with --drop
	Skipped  int `json:"left_alone"` // in another state, or changed meanwhile
	// Unreadable are left alone, too; with --all they are not counted.
	Unreadable int `json:"unreadable,omitempty"`
}

func (d *redriver) String() string {
	done, others := "redrove "+english.Plural(d.count.Redriven, "row", ""), "in other states (--force demands the effect of settled ones again)"
	switch {
	case d.drop:
		done, others = "dropped "+english.Plural(d.count.Dropped, "row", ""), "settled, held by a worker, or still matched"
	case d.reset:
		others = "in other states, or held by a worker"
	}
	if d.count.Skipped > 0 {
		done += fmt.Sprintf("; left %d alone, %s", d.count.Skipped, others)
	}
	if d.count.Unreadable > 0 {
		done += fmt.Sprintf("; left %d alone that this Pawl cannot read (\"pawl explain\" says why)", d.count.Unreadable)
	}
	return done
}

// redriver redrives rows by compare-and-swap, so that workers may run.
type redriver struct {
	ledger    *ledger.Ledger
	selection *rowSelection
	count     redriven
	redriveOptions
}

// one redrives the object that an argument means.
func (d *redriver) one(ctx context.Context, v *ledgerReader, arg string) error {
	object, rows, err := v.find(ctx, arg)
	if err != nil {
		return err
	}
	if pipeline := d.selection.pipeline; pipeline != "" {
		rows = slices.DeleteFunc(rows, func(r ledger.Row) bool { return r.Pipeline != pipeline })
	}
	if len(rows) == 0 {
		return app.Failed(unknownObject(object), "pawl explain "+app.ShellQuote(object)+" says why")
	}
	return d.redrive(ctx, rows)
}

// redrivePage is how many rows are redriven at a time.
const redrivePage = 500

// all redrives every selected row.
func (d *redriver) all(ctx context.Context, v *ledgerReader) error {
	for last := (ledger.RowKey{}); ; {
		page, err := d.page(ctx, v, last)
		if err != nil || len(page) == 0 {
			return err
		}
		last = page[len(page)-1].RowKey
		if err := d.redrive(ctx, page); err != nil {
			return err
		}
	}
}

// page reads the next selected rows. The scan has ended before anything is written.
func (d *redriver) page(ctx context.Context, v *ledgerReader, after ledger.RowKey) (page []ledger.Row, err error) {
	for row, err := range v.selected(ctx, d.selection, after) {
		if err != nil {
			return nil, err
		}
		if page = append(page, row); len(page) == redrivePage {
			break
		}
	}
	return page, nil
}

func (d *redriver) selects(r *ledger.Row) bool { return r.Unreadable == nil && d.selection.matches(r) }

// maxRounds is how often a row that changes all the time is tried.
const maxRounds = 20

// redrive swaps rows. What another changed meanwhile is looked at again.
func (d *redriver) redrive(ctx context.Context, rows []ledger.Row) error {
	for range maxRounds {
		changes := d.changes(rows)
		if len(changes) == 0 {
			return nil
		}
		outcomes, err := d.ledger.Swap(ctx, changes)
		if err != nil {
			return err
		}
		rows = rows[:0]
		for _, o := range outcomes {
			switch {
			case o.Applied && d.drop:
				d.count.Dropped++
			case o.Applied:
				d.count.Redriven++
			case o.Current != nil:
				rows = append(rows, *o.Current)
			}
		}
	}
	return errors.New("the ledger changes too fast: some rows were not redriven; try again")
}

// changes returns the swaps of the rows that are in a wanted state.
func (d *redriver) changes(rows []ledger.Row) (changes []ledger.Change) {
	now := time.Now().UTC()
	d.selection.now = now
	for i := range rows {
		switch {
		case rows[i].Unreadable != nil:
			d.count.Unreadable++
			continue
		case !d.selects(&rows[i]):
			d.count.Skipped++
			continue
		}
		if d.drop {
			changes = append(changes, ledger.Change{Key: rows[i].RowKey, Expect: rows[i].Nonce})
			continue
		}
		next := rows[i].Redrive(d.force, now)
		if d.reset {
			next = next.ResetOrder(now)
		}
		next.Nonce = store.NewNonce()
		changes = append(changes, ledger.Change{Key: next.RowKey, Expect: rows[i].Nonce, Row: &next})
	}
	return changes
}
