package archivecmd

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/archive"
	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/config"
	"github.com/pawlhq/pawl/cmd/pawl/dashboard"
	"github.com/pawlhq/pawl/cmd/pawl/parts"
)

func newArchiveStatusCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "status [NAME...]",
		Short: "Show the progress of each shard",
		Long: `Status prints one line for each shard: its state, the arrival time of the newest record
that is known to be stored, its owner, and the number of announced objects that the
owner has not committed yet.`,
		Example: `  pawl archive status
  pawl archive status clicks --json`,
		RunE: func(cmd *cobra.Command, names []string) error {
			return withArchives(cmd.Context(), a, a.Err, names, parts.Ledger.OpenReadOnly, func(ctx context.Context, _ *config.Config, list []*archive.Archive) error {
				for _, one := range list {
					if err := printStatus(ctx, a, one); err != nil {
						return exitError(err)
					}
				}
				return nil
			})
		},
	}
}

// dashboardOf returns the pages of "pawl archive run".
func dashboardOf(list []*archive.Archive) http.Handler {
	return dashboard.Handler(dashboard.Config{Logger: list[0].Logger, Tables: []dashboard.TablePage{{
		Path: "/archives", Title: "Archives", Note: "As this process last read them from the ledger.",
		Table: func(context.Context) (t dashboard.Table, err error) {
			t.Head = []string{"Archive", "Location", "Stored until", "Open shards", "Held here", "Failing here", "Retention of the stream", "Last read", "State"}
			now := time.Now()
			for _, one := range list {
				s := one.Status()
				state := "running"
				if s.Err != nil {
					state = "stopped: " + s.Err.Error()
				}
				t.Rows = append(t.Rows, []string{
					one.Name, app.FormatPrefix(one.Bucket, one.Prefix), app.RelativeTime(s.StoredUntil, now), strconv.Itoa(s.Open), strconv.Itoa(s.Held),
					strconv.Itoa(s.Stopped), s.Retention.String(), app.RelativeTime(s.LastRead, now), state,
				})
			}
			return t, nil
		},
	}}})
}

type shardJSON struct {
	Archive   string         `json:"archive"`
	Shard     string         `json:"shard"`
	State     archive.State  `json:"state"`
	Owner     string         `json:"owner,omitempty"`
	Committed archive.Number `json:"committed,omitempty"`
	Arrival   time.Time      `json:"arrival,omitzero"`  // of the newest committed record
	Pending   int            `json:"pending,omitempty"` // announced objects that are not committed yet
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
	newest := "nothing stored yet"
	if !s.Arrival.IsZero() {
		newest = "stored up to " + s.Arrival.UTC().Format(time.RFC3339)
	}
	_, err := fmt.Fprintf(a.Out, "  %s  %s  %s  owner %s, %d objects pending\n", s.Shard, s.State, newest, cmp.Or(s.Owner, "none"), s.Pending)
	return err
}

func newArchiveRecoverCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "recover NAME",
		Short: "Resume an archive whose ledger or claim file was lost",
		Long: `Recover binds the archive to the ledger of pawl.yaml. Use it if the previous ledger was
lost, restored or replaced, or if the claim file in the bucket was deleted. Stop all
workers of the archive first. Recover waits for 15 minutes, until no earlier upload can
start any more. The workers then list the stored objects and continue after them.`,
		Example: `  pawl archive recover clicks`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			return withArchives(cmd.Context(), a, a.Err, names, parts.Ledger.Open, func(ctx context.Context, _ *config.Config, list []*archive.Archive) error {
				return recoverShards(ctx, a, list[0])
			})
		},
	}
}

func recoverShards(ctx context.Context, a *app.App, one *archive.Archive) error {
	one.Logger.Info("waiting until no earlier upload can start any more", "for", archive.RecoveryWait)
	c, err := one.Recover(ctx)
	if err != nil {
		return exitError(err)
	}
	if a.JSON {
		return a.PrintJSON(c)
	}
	_, err = fmt.Fprintf(a.Out, "%s now has generation %d: start its workers\n", one.Name, c.Generation)
	return err
}
