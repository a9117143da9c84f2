package archivecmd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/archive"
	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/config"
	"github.com/pawlhq/pawl/cmd/pawl/parts"
	"github.com/pawlhq/pawl/event"
)

func newArchiveVerifyCommand(a *app.App) *cobra.Command {
	var o archive.VerifyOptions
	cmd := &cobra.Command{
		Use:   "verify [NAME...]",
		Short: "Prove that every range of every shard is covered exactly once",
		Long: `Verify lists all objects of the archives. It proves that the ranges in their keys cover
every shard without a hole and without an overlap, up to the last number that the ledger
records as stored. It also checks that announced objects are stored, and that malformed
records are stored below _pawl/malformed/. With --deep it reads every object and compares
the content with the digest that was computed before the upload.

Verify reports an announced object that is not stored yet as pending. A pending object is
not a loss: the next owner of the shard stores it. Verify reports a gap as expired if at
least one of its records is known to have expired before it was stored. If it is unknown
whether the range had any records, verify counts the gap as possibly expired.

With --from and --to, verify lists only the minutes of that window. It proves that nothing
is missing between the first and the last object of each shard in the window. It proves
nothing about the range before the first object. It covers the range after the last object
only if the window includes the newest object of the shard.`,
		Example: `  pawl archive verify
  pawl archive verify clicks --deep --json
  pawl archive verify clicks --deep --from 2026-11-23T00:00:00Z --to 2026-11-24T00:00:00Z`,
		RunE: func(cmd *cobra.Command, names []string) error {
			if !o.To.IsZero() && !o.From.Before(o.To) {
				return app.Usage("--from %s: want a time before --to %s", o.From.Format(time.RFC3339), o.To.Format(time.RFC3339))
			}
			bar := a.NewProgress()
			defer bar.End()
			return withArchives(cmd.Context(), a, bar, names, parts.Ledger.OpenReadOnly, func(ctx context.Context, _ *config.Config, list []*archive.Archive) error {
				return verifyAll(ctx, a, list, o, bar)
			})
		},
	}
	cmd.Flags().BoolVar(&o.Deep, "deep", false, "read every object")
	cmd.Flags().TimeVar(&o.From, "from", time.Time{}, []string{time.RFC3339}, "check only objects of minutes at or after this time (RFC 3339)")
	cmd.Flags().TimeVar(&o.To, "to", time.Time{}, []string{time.RFC3339}, "check only objects of minutes before this time (RFC 3339)")
	app.DocumentExitCodes(cmd, app.ExitCodes+"  3  verify found missing, overlapping, damaged, foreign or unreadable objects\n")
	return cmd
}

func verifyAll(ctx context.Context, a *app.App, list []*archive.Archive, o archive.VerifyOptions, bar *app.Progress) error {
	if bar.Shown {
		bar.Draw(-1, progressbar.OptionShowIts(), progressbar.OptionSetItsString("objects"), progressbar.OptionThrottle(100*time.Millisecond))
	}
	bad := false
	for _, one := range list {
		seen := 0
		o.OnKey = func(string) {
			seen++
			showVerified(bar, one.Name, seen)
		}
		r, err := one.Verify(ctx, o)
		bar.Clear()
		if err != nil {
			return exitError(err)
		}
		bad = bad || len(r.Findings) > 0
		if err := printVerified(a, one, r); err != nil {
			return err
		}
	}
	if bad {
		return app.Found()
	}
	return nil
}

func showVerified(p *app.Progress, name string, objects int) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	if p.Bar != nil {
		p.Bar.Describe(fmt.Sprintf("%s: %d objects", name, objects))
		_ = p.Bar.Add(1) // a failure to draw the bar is harmless
	}
}

func printVerified(a *app.App, one *archive.Archive, r *archive.Report) error {
	if a.JSON {
		return a.PrintJSON(struct {
			Archive string `json:"archive"`
			*archive.Report
		}{one.Name, r})
	}
	for _, list := range [][]archive.Finding{r.Findings, r.Notes} {
		for i := range list {
			printFinding(a, one, &list[i])
		}
	}
	state := "every range of every shard is covered exactly once"
	if !r.From.IsZero() || !r.To.IsZero() {
		state = "every range between the objects of the window is covered exactly once"
	}
	if n := len(r.Findings); n > 0 {
		state = fmt.Sprintf("%d findings", n)
	}
	lines := []string{fmt.Sprintf("%s: %d objects of %d shards: %s", one.Name, r.Objects, r.Shards, state)}
	if r.Records > 0 {
		lines = append(lines, fmt.Sprintf("%d records of the stream were read", r.Records))
	}
	if r.Expired > 0 {
		lines = append(lines, fmt.Sprintf("%d objects are gaps whose records expired before they could be stored", r.Expired))
	}
	if r.PossiblyExpired > 0 {
		lines = append(lines, fmt.Sprintf("%d objects are gaps in which records may have expired before they could be stored", r.PossiblyExpired))
	}
	if r.Malformed > 0 {
		lines = append(lines, fmt.Sprintf("%d malformed records are stored unchanged", r.Malformed))
	}
	_, err := fmt.Fprintln(a.Out, strings.Join(lines, "; "))
	return err
}

func printFinding(a *app.App, one *archive.Archive, f *archive.Finding) {
	fmt.Fprintf(a.Out, "%s", f.Kind)
	if f.Range != "" {
		fmt.Fprintf(a.Out, " %s %s", event.Quote(f.Shard), f.Range)
	}
	fmt.Fprintf(a.Out, ": %s\n", f.What)
	for _, key := range f.Keys {
		fmt.Fprintf(a.Out, "  %s\n", app.FormatPrefix(one.Bucket, key))
	}
}
