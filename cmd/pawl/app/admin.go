package app

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"sync"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/cmd/pawl/admin"
	"github.com/pawlhq/pawl/cmd/pawl/config"
)

// WithAdminFlag adds the flag --admin to a command and returns the command.
func (a *App) WithAdminFlag(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&a.Admin, "admin", "", "`address` for /livez, /readyz, /metrics and the dashboard of pipelines or archives (default: the configuration's admin.listen; none if empty)")
	return cmd
}

// AdminAddress returns the address for probes and metrics, or "".
func (a *App) AdminAddress(c *config.Config) string { return cmp.Or(a.Admin, c.Admin.Listen) }

// StartAdmin serves probes, metrics and a dashboard, which may be nil, and runs a task beside, until the returned function is called.
// Without an address it does nothing.
func (a *App) StartAdmin(ctx context.Context, c *config.Config, log *slog.Logger, status func() admin.Status, metrics, dashboard http.Handler, task func(context.Context)) (stop func(), err error) {
	listen := a.AdminAddress(c)
	if listen == "" {
		return func() {}, nil
	}
	server, err := admin.Listen(ctx, admin.Config{Listen: listen, Token: c.Admin.Token.Reveal(), Status: status, Metrics: metrics, Dashboard: dashboard, Logger: log})
	if err != nil {
		return nil, err
	}
	stop = RunBeside(ctx, task, func(ctx context.Context) {
		if err := server.Serve(ctx); err != nil {
			log.Error("the admin listener failed; processing continues", "error", err)
		}
	})
	log.Info("admin listener", "address", server.Addr(), "paths", "/livez /readyz /metrics", "dashboard", server.DashboardAccess())
	return stop, nil
}

// RunBeside runs tasks until the returned function is called, even after ctx ends.
func RunBeside(ctx context.Context, tasks ...func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var work sync.WaitGroup
	for _, task := range tasks {
		work.Go(func() { task(ctx) })
	}
	return func() { cancel(); work.Wait() }
}
