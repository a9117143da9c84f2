package archivecmd

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/archive"
	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/parts"
)

func newArchiveStatusCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "status [NAME...]",
		Short: "Show how far each shard is stored",
		Long: `Status prints a line for each shard: how far it is stored, by whom, and how many
objects were announced since.`,
		Example: `  pawl archive status
  pawl archive status clicks --json`,
		RunE: func(cmd *cobra.Command, names []string) error {
			return withArchives(cmd.Context(), a, a.Err, names, parts.Ledger.OpenReadOnly, func(ctx context.Context, list []*archive.Archive) error {
				for _, one := range list {
					if err := printStatus(ctx, a, one); err != nil {
						return explained(err)
					}
				}
				return nil
			})
		},
	}
}

// shardJSON is the state of a shard with --json.
type shardJSON struct {
	Archive   string         `json:"archive"`
	Shard     string         `json:"shard"`
	State     archive.State  `json:"state"`
	Owner     string         `json:"owner,omitempty"`
	Committed archive.Number `json:"committed,omitempty"`
	Arrival   time.Time      `json:"arrival,omitzero"`  // of the newest record that is stored
	Pending   int            `json:"pending,omitempty"` // objects that are being stored, or just were
	Behind    float64        `json:"behind,omitempty"`  // seconds since Arrival
}

func printStatus(ctx context.Context, a *app.App, one *archive.Archive) error {
	c, err := one.ExistingClaim(ctx)
	if err != nil {
		return err
	}
	if !a.JSON {
		fmt.Fprintf(a.Out, "%s in %s, generation %d\n", one.Name, app.FormatPrefix(one.Bucket, one.Prefix), c.Generation)
	}
	for p, err := range one.AllProgress(ctx, c) {
		if err != nil {
			return err
		}
		s := shardJSON{Archive: one.Name, Shard: p.Shard, State: p.State, Owner: p.Owner, Committed: p.Committed, Arrival: p.Arrival}
		if p.Intent != nil {
			s.Pending = len(p.Intent.Objects)
		}
		if p.State != archive.Finished && !p.Arrival.IsZero() {
			s.Behind = time.Since(p.Arrival).Seconds()
		}
		if err := printShard(a, &s); err != nil {
			return err
		}
	}
	return nil
}

func printShard(a *app.App, s *shardJSON) error {
	if a.JSON {
		return a.PrintJSON(s)
	}
	newest := "nothing is stored yet"
	if !s.Arrival.IsZero() {
		newest = "stored up to " + s.Arrival.UTC().Format(time.RFC3339)
	}
	_, err := fmt.Fprintf(a.Out, "  %s  %s  %s  by %s, %d objects announced since\n", s.Shard, s.State, newest, cmp.Or(s.Owner, "nobody"), s.Pending)
	return err
}

func newArchiveRecoverCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "recover NAME",
		Short: "Go on with an archive whose ledger or claim file was lost",
		Long: `Recover makes the ledger of pawl.yaml that of the archive, when the one before was lost or
is another, or when the bucket has lost the claim file. It takes a quarter of an hour: until no write of the time before can
begin any more. After it the workers list what is stored, and go on behind that.`,
		Example: `  pawl archive recover clicks`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			return withArchives(cmd.Context(), a, a.Err, names, parts.Ledger.Open, func(ctx context.Context, list []*archive.Archive) error {
				return recoverShards(ctx, a, list[0])
			})
		},
	}
}

func recoverShards(ctx context.Context, a *app.App, one *archive.Archive) error {
	one.Logger.Info("waiting until no write of before can begin any more", "for", archive.RecoveryWait)
	c, err := one.Recover(ctx)
	if err != nil {
		return explained(err)
	}
	if a.JSON {
		return a.PrintJSON(c)
	}
	_, err = fmt.Fprintf(a.Out, "%s is in generation %d now: start its workers\n", one.Name, c.Generation)
	return err
}
