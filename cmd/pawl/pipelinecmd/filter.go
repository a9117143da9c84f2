package pipelinecmd

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/config"
	"github.com/pawlhq/pawl/ledger"
)

type rowFilter struct {
	states   []string
	pipeline string
	prefix   string
	older    time.Duration
	newer    time.Duration
	failure  string
}

// register appends statesDefault to the help of --state.
func (f *rowFilter) register(a *app.App, cmd *cobra.Command, statesDefault string) {
	addLedgerFlag(a, cmd)
	flags := cmd.Flags()
	flags.StringSliceVar(&f.states, "state", nil, "only these `states`, separated by commas"+statesDefault)
	flags.StringVar(&f.pipeline, "pipeline", "", "only this `pipeline`")
	flags.StringVar(&f.prefix, "prefix", "", "only keys with this prefix: `s3://bucket/prefix`, or a key prefix in any bucket")
	flags.DurationVar(&f.older, "older", 0, "only rows unchanged for at least this `duration`, for example 36h")
	flags.DurationVar(&f.newer, "newer", 0, "only rows changed within this `duration`")
	flags.StringVar(&f.failure, "error", "", "only rows whose last error contains this `text`, ignoring case")
	_ = cmd.RegisterFlagCompletionFunc("state", completeStates) // fails only if the flag is missing
	_ = cmd.RegisterFlagCompletionFunc("pipeline", completePipelines(a))
}

// narrows ignores --state and --pipeline.
func (f *rowFilter) narrows() bool {
	return f.prefix != "" || f.older != 0 || f.newer != 0 || f.failure != ""
}

// A zero field accepts every row.
type rowSelection struct {
	states   []ledger.State
	pipeline string
	bucket   string
	prefix   string
	before   time.Time // upper bound of UpdatedAt, exclusive
	after    time.Time // lower bound of UpdatedAt, inclusive
	failure  string    // part of LastError, in lower case
	now      time.Time // for the states of rows
	also     func(r *ledger.Row) bool
}

func (f *rowFilter) selection(now time.Time) (*rowSelection, error) {
	states, err := parseStates(f.states)
	if err != nil {
		return nil, err
	}
	if f.older < 0 || f.newer < 0 {
		return nil, app.Usage("--older and --newer: want a duration above 0, for example 36h")
	}
	s := &rowSelection{states: states, pipeline: f.pipeline, prefix: f.prefix, failure: strings.ToLower(f.failure), now: now}
	if rest, ok := strings.CutPrefix(f.prefix, "s3://"); ok {
		s.bucket, s.prefix, _ = strings.Cut(rest, "/")
	}
	if f.older > 0 {
		s.before = now.Add(-f.older)
	}
	if f.newer > 0 {
		s.after = now.Add(-f.newer)
	}
	return s, nil
}

func (s *rowSelection) matches(r *ledger.Row) bool {
	switch {
	case s.pipeline != "" && r.Pipeline != s.pipeline, s.bucket != "" && r.Bucket != s.bucket, !strings.HasPrefix(r.Key, s.prefix):
		return false
	case len(s.states) > 0 && !slices.Contains(s.states, r.State(s.now)):
		return false
	case !s.before.IsZero() && !r.UpdatedAt.Before(s.before), !s.after.IsZero() && r.UpdatedAt.Before(s.after):
		return false
	case s.also != nil && !s.also(r):
		return false
	}
	return s.failure == "" || strings.Contains(strings.ToLower(r.LastError), s.failure)
}

// selected yields the rows after the given key that match, in order of pipeline and key.
func (v *ledgerReader) selected(ctx context.Context, s *rowSelection, after ledger.RowKey) iter.Seq2[ledger.Row, error] {
	return func(yield func(ledger.Row, error) bool) {
		for row, err := range v.candidates(ctx, s, after) {
			if err == nil && !s.matches(&row) {
				continue
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// candidates yields the rows that an examination of a selection reads, after the given key.
func (v *ledgerReader) candidates(ctx context.Context, s *rowSelection, after ledger.RowKey) iter.Seq2[ledger.Row, error] {
	return func(yield func(ledger.Row, error) bool) {
		names, err := v.pipelines(ctx, s.pipeline)
		if err != nil {
			yield(ledger.Row{}, err)
			return
		}
		for _, name := range names {
			if name < after.Pipeline {
				continue
			}
			r := ledger.Range{Pipeline: name, Bucket: s.bucket, After: after}
			if s.bucket != "" {
				r.Prefix = s.prefix
			}
			for row, err := range v.Scan(ctx, r) {
				if !yield(row, err) || err != nil {
					return
				}
			}
		}
	}
}

// If name is empty, pipelines returns all pipelines that have rows.
func (v *ledgerReader) pipelines(ctx context.Context, name string) ([]string, error) {
	if name != "" {
		return []string{name}, nil
	}
	return ledger.Pipelines(ctx, v)
}

// rowCount counts rows by pipeline and state.
type rowCount map[string]map[ledger.State]int

func (v *ledgerReader) count(ctx context.Context, s *rowSelection) (rowCount, error) {
	c := rowCount{}
	for row, err := range v.selected(ctx, s, ledger.RowKey{}) {
		if err != nil {
			return nil, err
		}
		if c[row.Pipeline] == nil {
			c[row.Pipeline] = map[ledger.State]int{}
		}
		c[row.Pipeline][row.State(s.now)]++
	}
	return c, nil
}

func (c rowCount) total() (n int) {
	for _, states := range c {
		for _, k := range states {
			n += k
		}
	}
	return n
}

// String returns lines such as "load: 3 settled, 1 dead".
func (c rowCount) String() string {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(c)) {
		var parts []string
		for _, state := range ledger.States {
			if n := c[name][state]; n > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", n, state))
			}
		}
		fmt.Fprintf(&out, "%s: %s\n", name, strings.Join(parts, ", "))
	}
	return out.String()
}

func parseStates(names []string) ([]ledger.State, error) {
	states := make([]ledger.State, len(names))
	for i, name := range names {
		states[i] = ledger.State(name)
		if !slices.Contains(ledger.States, states[i]) {
			return nil, app.Usage("--state %q: want %s", name, strings.Join(stateNames(), ", "))
		}
	}
	return states, nil
}

func stateNames() []string {
	names := make([]string, len(ledger.States))
	for i, s := range ledger.States {
		names[i] = string(s)
	}
	return names
}

// The name must be in the configuration or the ledger; an empty one stands for all.
func (v *ledgerReader) checkPipeline(ctx context.Context, name string) error {
	if name == "" || slices.Contains(pipelineNames(v.config), name) {
		return nil
	}
	known, err := ledger.Pipelines(ctx, v)
	if err != nil || slices.Contains(known, name) {
		return err
	}
	known = append(known, pipelineNames(v.config)...)
	slices.Sort(known)
	return app.Usage("--pipeline %q: not in the configuration or the ledger: want one of %s",
		name, cmp.Or(strings.Join(slices.Compact(known), ", "), "none"))
}

func pipelineNames(c *config.Config) []string {
	names := make([]string, len(c.Pipelines))
	for i := range c.Pipelines {
		names[i] = c.Pipelines[i].Name
	}
	return names
}

func completePipelines(a *app.App) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		c, err := a.Parts.LoadLedger(a.ConfigFile, os.LookupEnv)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return pipelineNames(c), cobra.ShellCompDirectiveNoFileComp
	}
}

func completeStates(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return stateNames(), cobra.ShellCompDirectiveNoFileComp
}
