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
		Short: "Retry dead or failed objects",
		Long: `Redrive resets the attempts of dead and failed objects, so that workers process them
at once. You can redrive while workers run. If none runs, the next "pawl run"
processes the objects. The ledger has one row for each object and pipeline.

--force repeats the effect even if it is committed. It applies to rows in the states
of --state, or, for a named object, in any state.

--reset-order also drops the sequencers of the selected rows. Use it after a forged
notification, or after the store's clock was set back, if a sequencer is higher than
those of real changes. "pawl explain" and the log report such rows. Workers then read
the object, and the next notification is accepted. Rows under a lease are skipped.

--drop deletes unsettled rows that their pipeline no longer matches after a change of
the configuration. Until then these rows are deferred. Other rows are skipped.

With --all the other flags select rows, as for "pawl ls". Redrive asks for
confirmation before it changes more than 100 rows. Without a terminal it requires
--yes.`,
		Example: `  pawl redrive s3://photos/in/cat.jpg
  pawl redrive --all
  pawl redrive --all --pipeline load --state dead,failed
  pawl redrive --all --error 'access denied' --newer 24h --dry-run
  pawl redrive --reset-order s3://photos/in/cat.jpg
  pawl redrive --drop --all --pipeline load
  pawl redrive --force --pipeline grayscale s3://photos/in/cat.jpg`,
		Args: cobra.ArbitraryArgs, // check counts the arguments
		RunE: func(cmd *cobra.Command, args []string) error { return runRedrive(cmd.Context(), a, o, args) },
	}
	o.register(a, cmd, " (default dead with --all; dead,failed for an object)")
	flags := cmd.Flags()
	flags.BoolVar(&o.force, "force", false, "repeat the effect even if it is committed")
	flags.BoolVar(&o.reset, "reset-order", false, "drop the sequencers, so that the next notification is accepted")
	flags.BoolVar(&o.drop, "drop", false, "delete unsettled rows that their pipeline no longer matches")
	flags.BoolVar(&o.all, "all", false, "redrive all selected rows")
	flags.BoolVar(&o.dryRun, "dry-run", false, "count the rows that --all would redrive")
	flags.BoolVar(&o.yes, "yes", false, "do not ask for confirmation")
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

// check also sets the default states.
func (o *redriveOptions) check(args []string) error {
	switch {
	case len(args) > 1, o.all == (len(args) == 1):
		return app.Usage("name one object, or --all")
	case !o.all && (o.narrows() || o.dryRun):
		return app.Usage("--prefix, --older, --newer, --error and --dry-run require --all, without an object")
	case o.drop && (o.force || o.reset):
		return app.Usage("--drop excludes --force and --reset-order")
	case len(o.states) > 0:
	case o.all && !o.drop:
		o.states = []string{string(ledger.StateDead)}
	case !o.force && !o.reset && !o.drop:
		o.states = []string{string(ledger.StateDead), string(ledger.StateFailed)}
	}
	return nil
}

// allowed returns an additional condition, or nil.
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

// Above this number of rows, redrive asks for confirmation.
const confirmAbove = 100

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

type redriven struct {
	Redriven int `json:"redriven"`
	Dropped  int `json:"dropped"` // deleted by --drop
	Skipped  int `json:"skipped"` // in another state, or changed meanwhile
	// Unreadable rows were skipped. With --all, redrive does not count them.
	Unreadable int `json:"unreadable,omitempty"`
}

func (d *redriver) String() string {
	done, others := "redrove "+english.Plural(d.count.Redriven, "row", ""), "in other states (--force repeats the effect of settled rows)"
	switch {
	case d.drop:
		done, others = "dropped "+english.Plural(d.count.Dropped, "row", ""), "settled, under a lease, or still matched"
	case d.once:
		others = "in other states, or changed meanwhile"
	case d.reset:
		others = "in other states, or under a lease"
	}
	if d.count.Skipped > 0 {
		done += fmt.Sprintf("; skipped %d: %s", d.count.Skipped, others)
	}
	if d.count.Unreadable > 0 {
		done += fmt.Sprintf("; skipped %d that this version cannot read (see \"pawl explain\")", d.count.Unreadable)
	}
	return done
}

// redriver uses compare-and-swap, so workers may run at the same time.
type redriver struct {
	ledger    *ledger.Ledger
	selection *rowSelection
	once      bool // skip rows that change meanwhile
	count     redriven
	redriveOptions
}

func (d *redriver) one(ctx context.Context, v *ledgerReader, arg string) error {
	object, rows, err := v.find(ctx, arg)
	if err != nil {
		return err
	}
	if pipeline := d.selection.pipeline; pipeline != "" {
		rows = slices.DeleteFunc(rows, func(r ledger.Row) bool { return r.Pipeline != pipeline })
	}
	if len(rows) == 0 {
		return app.Failed(unknownObject(object), "run pawl explain "+app.ShellQuote(object))
	}
	return d.redrive(ctx, rows)
}

// redrivePage is the number of rows in one swap.
const redrivePage = 500

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

// page ends its scan before the caller writes.
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

// maxRounds bounds the swaps of a row that changes concurrently.
const maxRounds = 20

// If a row changed meanwhile, redrive loads the new value and tries again.
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
			case d.once:
				d.count.Skipped++
			case o.Current != nil:
				rows = append(rows, *o.Current)
			}
		}
	}
	return errors.New("redrive: some rows kept changing and were not redriven: run it again")
}

// changes counts the rows that it does not select.
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
