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
		Short: "Examine the ledger's database, or make its tables",
		Args:  app.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newLedgerCheckCommand(a), newLedgerCreateCommand(a), newLedgerMigrateCommand(a))
	return cmd
}

func newLedgerCheckCommand(a *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Examine the ledger's database: version, tables, privileges, clock, connections",
		Long: `Check examines the database of the ledger that the configuration names, and
changes nothing in it. Of a ledger without a server it says whether it can be opened.

With --json it prints one JSON object a line: name, value, and problem where
something is wrong.`,
		Example: `  pawl ledger check
  pawl ledger check --json | jq -r 'select(.problem) | .problem'`,
		Args: app.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runLedgerCheck(cmd.Context(), a) },
	}
	app.DocumentExitCodes(cmd, app.ExitCodes+"  3  something is wrong\n")
	return cmd
}

func runLedgerCheck(ctx context.Context, a *app.App) error {
	c, err := a.Parts.LoadToLook(a.ConfigFile, os.LookupEnv)
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
	t.AppendHeader(table.Row{"CHECK", "VERDICT", "FOUND"})
	wrong := false
	for _, f := range findings {
		verdict := "ok"
		if f.Problem != "" {
			verdict, wrong = "WRONG", true
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
		Short: "Make the table of a ledger in DynamoDB",
		Long: `Create makes the table of a ledger in DynamoDB, of the one that the configuration
names or of LEDGER: billed by request, with point-in-time recovery, and protected
from deletion. In a table of Pawl that is there it only switches recovery on.
Databases of other kinds are made when Pawl starts.

The credentials and, without region=, the region are those of the environment. They
need dynamodb:CreateTable, DescribeTable, UpdateContinuousBackups, GetItem and
PutItem on the table.`,
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
		return app.Usage("the ledger %s is made when Pawl starts: there is nothing to create", l.Describe())
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
		Short: "Make or upgrade the ledger's tables, or print the statements that do",
		Long: `Migrate brings the tables of the ledger to the format of this Pawl, as every
command does that writes to it, if the database's user may make tables. Stop the
workers of an older version first: they cannot read what it upgrades.

Where it may not, --print prints the statements that make them, for their owner to
run. It does not connect.`,
		Example: `  pawl ledger migrate
  pawl ledger migrate --print | psql service=admin`,
		Args: app.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runLedgerMigrate(cmd.Context(), a, script) },
	}
	cmd.Flags().BoolVar(&script, "print", false, "print the statements, and do nothing")
	app.DocumentExitCodes(cmd, app.ExitCodes)
	return cmd
}

func runLedgerMigrate(ctx context.Context, a *app.App, script bool) error {
	c, err := a.Parts.LoadToLook(a.ConfigFile, os.LookupEnv)
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
		return app.Usage("the ledger %s has no statements to print: Pawl makes it when it starts", l.Describe())
	}
	_, err = fmt.Fprint(a.Out, m.Script())
	return err
}
