package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/ledger"
)

// lsOptions are the flags of ls.
type lsOptions struct {
	states   []string
	pipeline string
	prefix   string
	limit    int
}

func newLsCommand(a *app) *cobra.Command {
	o := &lsOptions{}
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List what the ledger knows of objects",
		Long: `List prints a line for each object and pipeline that the ledger knows, in order
of pipeline, bucket and key. It works while workers run.

States: settled (done), pending (waits for a worker), processing, stuck (its
worker was lost, another takes over), failed (is tried again), dead (is not:
see "pawl redrive"), unreadable (a newer Pawl wrote the row).

With --json each line is one JSON object: pipeline, bucket, key (where it is not
UTF-8, key_base64 is the exact one), version_id, state, due (when a worker looks
next), want and have (kind, sequencer, generation, version_id, etag, mod_time,
size), lease (owner, until, live), fence, doubt, forced, dead, attempts, retry_at,
last_error, verify_at, event_time, created_at, updated_at. Times are RFC 3339,
sizes are bytes, what does not apply is left out.`,
		Example: `  pawl ls --state dead,failed
  pawl ls --pipeline grayscale --prefix s3://photos/in/2026/
  pawl ls --limit 0 --json | jq -r 'select(.attempts > 3) | .key'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runLs(cmd.Context(), a, o) },
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&o.states, "state", nil, "only these `states`, separated by commas")
	flags.StringVar(&o.pipeline, "pipeline", "", "only this `pipeline`")
	flags.StringVar(&o.prefix, "prefix", "", "only keys that begin so: `s3://bucket/prefix`, or a key's prefix in any bucket")
	flags.IntVar(&o.limit, "limit", 100, "at most so many `lines`; 0 for all")
	_ = cmd.RegisterFlagCompletionFunc("state", completeStates) // fails only for a flag that is not there
	_ = cmd.RegisterFlagCompletionFunc("pipeline", a.completePipelines)
	return cmd
}

// errLimit ends a listing that is longer than wanted.
var errLimit = errors.New("limit")

func runLs(ctx context.Context, a *app, o *lsOptions) (err error) {
	states, err := parseStates(o.states)
	if err != nil {
		return err
	}
	if o.limit < 0 {
		return usage("--limit %d: want a number of lines, or 0 for all", o.limit)
	}
	v, err := a.look(ctx)
	if err != nil {
		return err
	}
	defer v.close(&err)
	if err := v.checkPipeline(ctx, o.pipeline); err != nil {
		return err
	}
	now := time.Now()
	print := a.rowPrinter(now)
	printed := 0
	more := v.each(ctx, o, func(r *ledger.Row) error {
		if len(states) > 0 && !slices.Contains(states, r.State(now)) {
			return nil
		}
		if o.limit > 0 && printed == o.limit {
			return errLimit
		}
		printed++
		return print.row(r)
	})
	if more != nil && !errors.Is(more, errLimit) {
		return more
	}
	if err := print.end(); err != nil {
		return err
	}
	if more != nil {
		fmt.Fprintf(a.Err, "pawl: there are more than %d: --limit 0 prints all\n", o.limit)
	}
	return nil
}

// each calls f for every row that pipeline and prefix select.
func (v *view) each(ctx context.Context, o *lsOptions, f func(*ledger.Row) error) error {
	bucket, prefix := "", o.prefix
	if rest, ok := strings.CutPrefix(o.prefix, "s3://"); ok {
		bucket, prefix, _ = strings.Cut(rest, "/")
	}
	names := []string{o.pipeline}
	if o.pipeline == "" {
		var err error
		if names, err = ledger.Pipelines(ctx, v.Store); err != nil {
			return err
		}
	}
	for _, name := range names {
		r := ledger.Range{Pipeline: name, Bucket: bucket}
		if bucket != "" {
			r.Prefix = prefix
		}
		for row, err := range v.Scan(ctx, r) {
			if err != nil {
				return err
			}
			if !strings.HasPrefix(row.Key, prefix) {
				continue
			}
			if err := f(&row); err != nil {
				return err
			}
		}
	}
	return nil
}
