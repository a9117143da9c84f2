package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/ledger"
)

// redriveOptions are the flags of redrive.
type redriveOptions struct {
	pipeline string
	states   []string
	force    bool
	all      bool
}

func newRedriveCommand(a *app) *cobra.Command {
	o := &redriveOptions{}
	cmd := &cobra.Command{
		Use:   "redrive [s3://bucket/key | --all]",
		Short: "Try dead or failing objects again",
		Long: `Redrive gives objects fresh attempts: dead ones are tried again, and failed ones
at once. It works while workers run; without one, the next "pawl run" tries.

--force demands the effect again even where it is committed, of objects in the
states named by --state, or in any state where the object itself is named.`,
		Example: `  pawl redrive s3://photos/in/cat.jpg
  pawl redrive --all
  pawl redrive --all --pipeline load --state dead,failed
  pawl redrive --force --pipeline grayscale s3://photos/in/cat.jpg`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return runRedrive(cmd.Context(), a, o, args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.pipeline, "pipeline", "", "only this `pipeline`")
	flags.StringSliceVar(&o.states, "state", nil, "only these `states`, separated by commas (default dead with --all; dead,failed for an object)")
	flags.BoolVar(&o.force, "force", false, "demand the effect again even where it is committed")
	flags.BoolVar(&o.all, "all", false, "every object in these states")
	_ = cmd.RegisterFlagCompletionFunc("state", completeStates) // fails only for a flag that is not there
	_ = cmd.RegisterFlagCompletionFunc("pipeline", a.completePipelines)
	return cmd
}

func runRedrive(ctx context.Context, a *app, o *redriveOptions, args []string) (err error) {
	states, err := o.wanted(args)
	if err != nil {
		return err
	}
	v, err := a.look(ctx)
	if err != nil {
		return err
	}
	defer v.close(&err)
	if err := v.checkPipeline(ctx, o.pipeline); err != nil {
		return err
	}
	d := &redriver{ledger: ledger.New(v), states: states, force: o.force}
	if o.all {
		err = d.all(ctx, v, o.pipeline)
	} else {
		err = d.one(ctx, v, o.pipeline, args[0])
	}
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(d.count)
	}
	_, err = fmt.Fprintln(a.Out, d.count)
	return err
}

// wanted returns the states to redrive; none means any.
func (o *redriveOptions) wanted(args []string) ([]ledger.State, error) {
	switch {
	case o.all == (len(args) == 1):
		return nil, usage("name one object, or --all")
	case len(o.states) > 0:
		return parseStates(o.states)
	case o.all:
		return []ledger.State{ledger.StateDead}, nil
	case o.force:
		return nil, nil
	}
	return []ledger.State{ledger.StateDead, ledger.StateFailed}, nil
}

// redriven counts what redrive did.
type redriven struct {
	Redriven  int `json:"redriven"`   // rows: one for each object and pipeline
	LeftAlone int `json:"left_alone"` // in another state, or changed meanwhile
}

func (c redriven) String() string {
	s := fmt.Sprintf("redrove %d", c.Redriven)
	if c.LeftAlone > 0 {
		s += fmt.Sprintf("; left %d alone, in other states (--force demands the effect of settled ones again)", c.LeftAlone)
	}
	return s
}

// redriver redrives rows by compare-and-swap, so that workers may run.
type redriver struct {
	ledger *ledger.Ledger
	states []ledger.State
	force  bool
	count  redriven
}

// one redrives the object that an argument means.
func (d *redriver) one(ctx context.Context, v *view, pipeline, arg string) error {
	object, rows, err := v.find(ctx, arg)
	if err != nil {
		return err
	}
	if pipeline != "" {
		rows = slices.DeleteFunc(rows, func(r ledger.Row) bool { return r.Pipeline != pipeline })
	}
	if len(rows) == 0 {
		return failed(unheard(object), "pawl explain "+shellQuote(object)+" says why")
	}
	return d.redrive(ctx, rows)
}

// redrivePage is how many rows are redriven at a time.
const redrivePage = 500

// all redrives every row in the wanted states.
func (d *redriver) all(ctx context.Context, v *view, pipeline string) error {
	for last := (ledger.RowKey{}); ; {
		page, err := d.page(ctx, v, ledger.Range{Pipeline: pipeline, After: last})
		if err != nil || len(page) == 0 {
			return err
		}
		last = page[len(page)-1].RowKey
		if err := d.redrive(ctx, page); err != nil {
			return err
		}
	}
}

// page reads the next rows in the wanted states. The scan has ended before
// anything is written.
func (d *redriver) page(ctx context.Context, v *view, r ledger.Range) (page []ledger.Row, err error) {
	now := time.Now()
	for row, err := range v.Scan(ctx, r) {
		if err != nil {
			return nil, err
		}
		if d.wants(&row, now) {
			page = append(page, row)
		}
		if len(page) == redrivePage {
			break
		}
	}
	return page, nil
}

func (d *redriver) wants(r *ledger.Row, now time.Time) bool {
	return r.Unreadable == nil && (len(d.states) == 0 || slices.Contains(d.states, r.State(now)))
}

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
	for i := range rows {
		if !d.wants(&rows[i], now) {
			d.count.LeftAlone++
			continue
		}
		next := rows[i].Redrive(d.force, now)
		_, _ = rand.Read(next.Nonce[:]) // never fails
		changes = append(changes, ledger.Change{Key: next.RowKey, Expect: rows[i].Nonce, Row: &next})
	}
	return changes
}
