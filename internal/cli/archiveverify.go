package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/archive"
	"github.com/pawlhq/pawl/event"
)

func newArchiveVerifyCommand(a *app) *cobra.Command {
	var deep bool
	cmd := &cobra.Command{
		Use:   "verify [NAME...]",
		Short: "Prove that every range of every shard is covered exactly once",
		Long: `Verify lists all objects of the archives, and looks whether the ranges in their keys
cover every shard without a hole and without an overlap, as far as the ledger says
that it was stored. With --deep it reads every object, and compares its content with the
digest that was made before it was written.`,
		Example: `  pawl archive verify
  pawl archive verify clicks --deep --json`,
		RunE: func(cmd *cobra.Command, names []string) error {
			return a.withArchives(cmd.Context(), names, func(ctx context.Context, list []*archive.Archive) error {
				return a.verifyAll(ctx, list, deep)
			})
		},
	}
	cmd.Flags().BoolVar(&deep, "deep", false, "read every object")
	documentExitCodes(cmd, exitCodes+"  3  something is missing, doubled, damaged or foreign\n")
	return cmd
}

func (a *app) verifyAll(ctx context.Context, list []*archive.Archive, deep bool) error {
	bad := false
	for _, one := range list {
		r, err := a.verify(ctx, one, deep)
		if err != nil {
			return explained(err)
		}
		bad = bad || len(r.Findings) > 0
		if err := a.printVerified(one, r); err != nil {
			return err
		}
	}
	if bad {
		return found()
	}
	return nil
}

// verify shows how many objects it has seen, where a person watches.
func (a *app) verify(ctx context.Context, one *archive.Archive, deep bool) (*archive.Report, error) {
	if !isTerminal(a.Err) {
		return one.Verify(ctx, deep, nil)
	}
	bar := progressbar.NewOptions64(-1, progressbar.OptionSetWriter(a.Err), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetDescription(one.Name), progressbar.OptionThrottle(200*time.Millisecond))
	defer func() { _ = bar.Finish() }() // at worst it stays on the screen
	return one.Verify(ctx, deep, func(string) { _ = bar.Add(1) })
}

func (a *app) printVerified(one *archive.Archive, r *archive.Report) error {
	if a.json {
		return a.printJSON(struct {
			Archive string `json:"archive"`
			*archive.Report
		}{one.Name, r})
	}
	for _, f := range r.Findings {
		fmt.Fprintf(a.Out, "%s", f.Kind)
		if f.Range != "" {
			fmt.Fprintf(a.Out, " %s %s", event.Quote(f.Shard), f.Range)
		}
		fmt.Fprintf(a.Out, ": %s\n", f.What)
		for _, key := range f.Keys {
			fmt.Fprintf(a.Out, "  %s\n", place(one.Bucket, key))
		}
	}
	state := "every range of every shard is covered exactly once"
	if n := len(r.Findings); n > 0 {
		state = fmt.Sprintf("%d findings", n)
	}
	lines := []string{fmt.Sprintf("%s: %d objects of %d shards: %s", one.Name, r.Objects, r.Shards, state)}
	if r.Entries > 0 {
		lines = append(lines, fmt.Sprintf("%d entries of the stream were read", r.Entries))
	}
	if r.Gaps > 0 {
		lines = append(lines, fmt.Sprintf("%d of the objects are gaps: their records had expired before they could be stored", r.Gaps))
	}
	_, err := fmt.Fprintln(a.Out, strings.Join(lines, "; "))
	return err
}
