package pipelinecmd

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/config"
	"github.com/pawlhq/pawl/cmd/pawl/parts"
)

// NewCheckCommand returns the command check.
func NewCheckCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Check the configuration, without a ledger or an object store",
		Long: `Check reads the configuration, and builds its sources, pipelines and archives. It
reports invalid fields, and conflicts between pipelines. The variables in the file
must be set, and the programs of exec installed. "pawl archive run" also rejects
archives with equal names, and "pawl files serve" a short secret or unusable keys.

Check writes nothing, and contacts no server. Only if a pipeline has the action load,
it connects to the ledger's database, which must have Pawl's tables.

"pawl ledger check" checks the ledger, and "pawl doctor" the object store.`,
		Example: `  pawl check
  pawl check -c /etc/pawl/pawl.yaml`,
		Args: app.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.WithRuntime(cmd.Context(), a.Err, slog.LevelWarn, loaderWithoutLedger(a), true, func(ctx context.Context, m *app.Runtime) error {
				return checkConfig(ctx, a, m)
			})
		},
	}
}

// The loader replaces the ledger by one in memory, unless an action needs the database.
func loaderWithoutLedger(a *app.App) app.Loader {
	return func(name string, lookup func(string) (string, bool)) (*config.Config, error) {
		c, err := a.Parts.Load(name, lookup)
		if err != nil {
			return nil, err
		}
		for i := range c.Pipelines {
			if _, ok := c.Pipelines[i].Action.Config.(parts.Load); ok {
				return c, nil
			}
		}
		c.Ledger.Config = parts.Memory{}
		return c, nil
	}
}

func checkConfig(ctx context.Context, a *app.App, m *app.Runtime) error {
	sources, err := m.Sources(ctx)
	if err != nil {
		return err
	}
	for i := range m.Config.Archives {
		if _, err := parts.Archive(ctx, &m.Config.Archives[i]); err != nil {
			return m.Config.At(fmt.Sprintf("archives[%d]", i), err)
		}
	}
	if len(m.Config.Pipelines) > 0 {
		if m.Config.Files != nil {
			return app.ErrPipelinesWithFiles(m.Config)
		}
		if _, err := m.Build(sources...); err != nil {
			return err
		}
	}
	if _, err := app.NewAlerts(m.Config, "", nil, m.Log, func(string) time.Time { return time.Time{} }); err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(map[string]string{"file": m.Config.Name()})
	}
	_, err = fmt.Fprintf(a.Out, "%s is valid\n", m.Config.Name())
	return err
}
