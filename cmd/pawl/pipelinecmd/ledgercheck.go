package pipelinecmd

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/parts"
	"github.com/pawlhq/pawl/ledger"
)

// NewLedgerCommand returns the command ledger.
func NewLedgerCommand(a *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ledger",
		Short: "Check the ledger's database, or create its tables",
		Args:  app.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newLedgerCheckCommand(a), newLedgerCreateCommand(a), newLedgerMigrateCommand(a))
	return cmd
}

func newLedgerCheckCommand(a *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check the ledger's database: version, tables, privileges, clock, connections",
		Long: `Check reads the database of the configured ledger and reports problems. It changes
nothing. For a ledger in a file it checks that the file can be opened.

With --json it prints one JSON object per line: name, value, and, for a failed
check, problem.`,
		Example: `  pawl ledger check
  pawl ledger check --json | jq -r 'select(.problem) | .problem'`,
		Args: app.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runLedgerCheck(cmd.Context(), a) },
	}
	app.DocumentExitCodes(cmd, app.ExitCodes+"  3  a check failed\n")
	return cmd
}

func runLedgerCheck(ctx context.Context, a *app.App) error {
	c, err := a.Parts.LoadLedger(a.ConfigFile, os.LookupEnv)
	if err != nil {
		return err
	}
	l := c.Ledger.Config.(parts.Ledger)
	findings := []parts.Finding{{Name: "ledger", Value: l.Describe()}}
	if checker, ok := l.(parts.Checker); ok {
		skew := cmp.Or(time.Duration(c.Lease.Skew), ledger.DefaultPolicy().Skew)
		if findings, err = checker.Check(ctx, skew); err != nil {
			return err
		}
	} else {
		v, err := openReadOnly(ctx, a)
		if err != nil {
			return err
		}
		v.closeInto(&err)
		if err != nil {
			return err
		}
	}
	return printFindings(a, findings)
}

func printFindings(a *app.App, findings []parts.Finding) error {
	t := table.NewWriter()
	t.SetOutputMirror(a.Out)
	t.SetStyle(app.PlainTable)
	t.SuppressTrailingSpaces()
	t.AppendHeader(table.Row{"CHECK", "RESULT", "VALUE"})
	wrong := false
	for _, f := range findings {
		verdict := "ok"
		if f.Problem != "" {
			verdict, wrong = "FAILED", true
		}
		t.AppendRow(table.Row{f.Name, verdict, cmp.Or(f.Value, "nothing")})
		if a.JSON {
			if err := a.PrintJSON(f); err != nil {
				return err
			}
		}
	}
	if !a.JSON {
		t.Render()
		for _, f := range findings {
			if f.Problem != "" {
				fmt.Fprintf(a.Out, "%s: %s\n", f.Name, f.Problem)
			}
		}
	}
	if wrong {
		return app.Found()
	}
	return nil
}

func newLedgerCreateCommand(a *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create [LEDGER]",
		Short: "Create the DynamoDB table of a ledger",
		Long: `Create creates the DynamoDB table of LEDGER, or of the configured ledger. The table
has on-demand billing, point-in-time recovery, and deletion protection. If the table
exists and belongs to Pawl, create only enables point-in-time recovery. Pawl creates
databases of other kinds when it starts.

The environment provides the credentials and, without region=, the region. They need
dynamodb:CreateTable, DescribeTable, UpdateContinuousBackups, GetItem and PutItem on
the table.`,
		Example: "  pawl ledger create 'dynamodb://pawl?region=eu-central-1'",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				a.Ledger = args[0]
			}
			return runLedgerCreate(cmd.Context(), a)
		},
	}
	app.DocumentExitCodes(cmd, app.ExitCodes)
	return cmd
}

func runLedgerCreate(ctx context.Context, a *app.App) error {
	c, err := loadLedgerConfig(a)
	if err != nil {
		return err
	}
	l := c.Ledger.Config.(parts.Ledger)
	made, ok := l.(parts.Creator)
	if !ok {
		return app.Usage("ledger %s: nothing to create: Pawl creates it when it starts", l.Describe())
	}
	if err := made.Create(ctx); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.Out, "the ledger %s is ready\n", l.Describe())
	return err
}

func newLedgerMigrateCommand(a *app.App) *cobra.Command {
	var script bool
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Create or upgrade the ledger's tables, or print the SQL statements",
		Long: `Migrate creates the ledger's tables, or upgrades them to the format of this version.
Every command that writes to the ledger does the same. The database user needs the
privilege to create tables. First stop workers of older versions, because they cannot
read upgraded tables.

If the user lacks this privilege, --print prints the SQL statements for the owner of
the database. It does not connect.`,
		Example: `  pawl ledger migrate
  pawl ledger migrate --print | psql service=admin`,
		Args: app.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runLedgerMigrate(cmd.Context(), a, script) },
	}
	cmd.Flags().BoolVar(&script, "print", false, "print the SQL statements without running them")
	app.DocumentExitCodes(cmd, app.ExitCodes)
	return cmd
}

func runLedgerMigrate(ctx context.Context, a *app.App, script bool) error {
	c, err := a.Parts.LoadLedger(a.ConfigFile, os.LookupEnv)
	if err != nil {
		return err
	}
	l := c.Ledger.Config.(parts.Ledger)
	if !script {
		s, err := l.Open(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(a.Out, "the ledger %s is up to date\n", l.Describe())
		return s.Close()
	}
	m, ok := l.(parts.Migrator)
	if !ok {
		return app.Usage("ledger %s: no statements to print: Pawl creates it when it starts", l.Describe())
	}
	_, err = fmt.Fprint(a.Out, m.Script())
	return err
}
