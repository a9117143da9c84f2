package app

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/pawlhq/pawl/action/execaction"
)

// repeatWindow is how long signals count as one: a terminal, a wrapper and a service
// manager may each pass on the same Ctrl-C.
const repeatWindow = 500 * time.Millisecond

// UntilSignal returns a context that ends at the first SIGINT or SIGTERM, for
// an orderly end. A second one then ends the process at once, and what it has
// started with it. The caller calls stop when the command is done.
func UntilSignal(ctx context.Context, log *slog.Logger) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		var first time.Time
		select {
		case s := <-signals:
			first = time.Now()
			log.Info("ending in order; another signal ends it at once", "signal", s.String())
			cancel()
		case <-ctx.Done():
		}
		for {
			select {
			case s := <-signals:
				if time.Since(first) >= repeatWindow {
					exitNow(s, log)
				}
			case <-done:
				return
			}
		}
	})
	return ctx, func() {
		signal.Stop(signals)
		cancel()
		close(done)
		watch.Wait()
	}
}

// exitNow ends the process by the signal, as if nobody caught it, or else with
// the exit code that a shell makes of that.
func exitNow(s os.Signal, log *slog.Logger) {
	log.Warn("ended at once by a second signal; what was under way is taken over when its leases have expired", "signal", s.String())
	execaction.KillAll()
	signal.Reset(s)
	code := ExitFailed
	if n, ok := s.(syscall.Signal); ok {
		code = ExitSignal + int(n)
	}
	if p, err := os.FindProcess(os.Getpid()); err == nil && p.Signal(s) == nil {
		<-time.After(time.Second) // it may be ignored
	}
	os.Exit(code)
}
