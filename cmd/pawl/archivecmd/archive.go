// Package archivecmd implements the pawl archive commands: run, status, verify, recover and demo.
package archivecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/archive"
	"github.com/pawlhq/pawl/cmd/pawl/admin"
	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/config"
	"github.com/pawlhq/pawl/cmd/pawl/parts"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/metrics/prom"
	"github.com/pawlhq/pawl/store"
)

// NewArchiveCommand returns the command archive.
func NewArchiveCommand(a *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "archive",
		Short: "Store a stream of records in a bucket, each record once",
		Long: `Archive stores every record of a Kinesis data stream in a bucket exactly once, even
if workers crash, pause or are started twice. The archives are configured in pawl.yaml.
Their progress is stored in its ledger, which all workers of an archive share.`,
		Example: `  pawl archive run
  pawl archive status
  pawl archive verify clicks --deep`,
		Args: app.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newArchiveRunCommand(a), newArchiveStatusCommand(a), newArchiveVerifyCommand(a), newArchiveRecoverCommand(a), newDemoCommand(a))
	return cmd
}

func newArchiveRunCommand(a *app.App) *cobra.Command {
	return a.WithAdminFlag(&cobra.Command{
		Use:   "run [NAME...]",
		Short: "Store records until interrupted",
		Long: `Run stores the records of the named archives, or of all archives in pawl.yaml. Any
number of workers may run with one ledger: they divide the shards among themselves.
After SIGINT or SIGTERM the worker releases its shards within shutdown_timeout, and
other workers continue them. If one of several archives fails, the
others continue, and the command exits with 1 when it stops.`,
		Example: `  pawl archive run
  pawl archive run clicks --log-level warn
  pawl archive run --admin 127.0.0.1:8080`,
		RunE: func(cmd *cobra.Command, names []string) error {
			var records store.Store
			open := func(l parts.Ledger, ctx context.Context) (_ store.Store, err error) {
				records, err = l.Open(ctx)
				return records, err
			}
			return withArchives(cmd.Context(), a, a.Err, names, open, func(ctx context.Context, c *config.Config, list []*archive.Archive) error {
				return runArchives(ctx, a, c, list, records)
			})
		},
	})
}

// withArchives opens the named archives, or all if names is empty, and calls do with them. A signal
// cancels do's context. Logs go to logTo.
func withArchives(ctx context.Context, a *app.App, logTo io.Writer, names []string, open func(parts.Ledger, context.Context) (store.Store, error), do func(context.Context, *config.Config, []*archive.Archive) error) (err error) {
	log, err := a.Logger(logTo, slog.LevelInfo)
	if err != nil {
		return err
	}
	ctx, stop := app.UntilSignal(ctx, log)
	defer stop()
	c, err := a.Parts.LoadArchives(a.ConfigFile, os.LookupEnv)
	if err != nil {
		return err
	}
	chosen, err := chooseArchives(c, names)
	if err != nil {
		return err
	}
	if err := archive.CheckLease(time.Duration(c.Lease.TTL)); err != nil {
		return c.At("lease.ttl", err)
	}
	if c.Ledger.Kind == "memory" {
		return c.At("ledger", errors.New("a memory ledger is lost when the process exits: archives need sqlite:FILE, postgres://… or dynamodb://…"))
	}
	l, err := open(c.Ledger.Config.(parts.Ledger), ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	list, err := openArchives(ctx, c, chosen, l, log)
	if err != nil {
		return err
	}
	return do(ctx, c, list)
}

func openArchives(ctx context.Context, c *config.Config, chosen []int, l store.Store, log *slog.Logger) (list []*archive.Archive, err error) {
	store, err := app.Objects(ctx, c)
	if err != nil {
		return nil, err
	}
	registers := ledger.NewRows(l)
	for _, i := range chosen {
		one, err := parts.Archive(ctx, &c.Archives[i])
		if err != nil {
			return nil, c.At(fmt.Sprintf("archives[%d]", i), err)
		}
		if err := store.Check(ctx, one.Bucket); err != nil {
			return nil, err
		}
		one.Store, one.Registers, one.Logger = store, registers, log
		one.Lease, one.ShutdownTimeout = time.Duration(c.Lease.TTL), time.Duration(c.ShutdownTimeout)
		a, err := archive.New(one)
		if err != nil {
			return nil, c.At(fmt.Sprintf("archives[%d]", i), err)
		}
		list = append(list, a)
	}
	return list, nil
}

// chooseArchives returns the indexes of the named archives, or of all. It validates every name in
// the configuration.
func chooseArchives(c *config.Config, names []string) (chosen []int, err error) {
	if len(c.Archives) == 0 {
		return nil, c.At("archives", errors.New("no archives configured: add one"))
	}
	indexes := map[string]int{}
	for i := range c.Archives {
		name := c.Archives[i].Name
		if err := archive.CheckName(name); err != nil {
			return nil, c.At(fmt.Sprintf("archives[%d].name", i), err)
		}
		if _, twice := indexes[name]; twice {
			return nil, c.At(fmt.Sprintf("archives[%d].name", i), fmt.Errorf("another archive has the name %s", event.Quote(name)))
		}
		indexes[name] = i
		if len(names) == 0 {
			chosen = append(chosen, i)
		}
	}
	for _, name := range names {
		i, ok := indexes[name]
		if !ok {
			return nil, app.Usage("%s has no archive %s", c.Name(), event.Quote(name))
		}
		chosen = append(chosen, i)
	}
	return chosen, nil
}

// If one of several archives fails, the exit code is 1.
func runArchives(ctx context.Context, a *app.App, c *config.Config, list []*archive.Archive, records store.Store) error {
	metrics := prom.NewArchives(app.ThisBuild().Version, list)
	metrics.WatchObjects(list[0].Store)
	registers := ledger.NewRows(metrics.Store(records))
	for _, one := range list {
		one.Registers = registers
	}
	status := func() admin.Status { return statusOf(ctx, list) }
	stopAlerts, err := startAlerts(ctx, c, list)
	if err != nil {
		return err
	}
	defer stopAlerts()
	stop, err := a.StartAdmin(ctx, c, list[0].Logger, status, metrics.Handler(), dashboardOf(list), func(context.Context) {})
	if err != nil {
		return err
	}
	defer stop()
	defer app.ReportToSystemd(ctx, list[0].Logger, func() bool { return started(list) })()
	r := archive.Runner{Archives: list}
	err = r.Run(ctx)
	if err != nil && len(list) > 1 {
		return app.Failed(err, "")
	}
	return exitError(err)
}

// started reports whether each archive has begun to work or has failed.
func started(list []*archive.Archive) bool {
	return !slices.ContainsFunc(list, func(one *archive.Archive) bool {
		s := one.Status()
		return s.Err == nil && s.LastRead.IsZero()
	})
}

// startAlerts sends alerts about gaps until the returned function is called.
func startAlerts(ctx context.Context, c *config.Config, list []*archive.Archive) (stop func(), err error) {
	log := list[0].Logger
	alerts, err := app.NewAlerts(c, "archives", list[0].Registers.(*ledger.Rows), log, nil)
	if err != nil || alerts == nil {
		return func() {}, err
	}
	for _, one := range list {
		count := one.Observe
		one.Observe = func(shard string, o archive.Planned) {
			count(shard, o)
			if o.Format == archive.GapFormat && len(o.Malformed) == 0 {
				alerts.NoteGap(one.Name, shard, o.Expired)
			}
		}
	}
	names := make([]string, len(c.Archives)) // also those of other processes
	for i := range names {
		names[i] = c.Archives[i].Name
	}
	return app.RunBeside(ctx, alerts.Publish, func(ctx context.Context) {
		if err := alerts.RunArchives(ctx, names); err != nil {
			log.Error("alerts are missing", "error", err)
		}
	}), nil
}

func statusOf(ctx context.Context, list []*archive.Archive) (s admin.Status) {
	for _, one := range list {
		switch now := one.Status(); {
		case now.Err != nil:
			s.Unready = append(s.Unready, "archive "+one.Name+" has stopped with an error: see the log")
		default:
			s.CheckLoop("the worker of archive "+one.Name, "the ledger, stream or bucket of archive "+one.Name, now.LastTurn, now.LastRead, 2*one.Lease, one.Lease)
		}
	}
	if ctx.Err() != nil {
		s.Unready = append(s.Unready, "shutting down")
	}
	return s
}

// exitError gives errors in the configuration the exit code 2.
func exitError(err error) error {
	for _, kind := range []error{archive.ErrLostRegisters, archive.ErrLostClaim, archive.ErrClaimed, archive.ErrDenied, archive.ErrNoStream} {
		if errors.Is(err, kind) {
			return app.Misconfigured(err)
		}
	}
	return err
}
