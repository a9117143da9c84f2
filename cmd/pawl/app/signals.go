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

// A terminal, a wrapper and a service manager may each forward the same Ctrl-C, which must count as one.
const repeatWindow = 500 * time.Millisecond

// UntilSignal returns a context that ends at the first SIGINT or SIGTERM. A second signal kills the started
// commands and ends the process.
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
			log.Info("shutting down; send the signal again to stop immediately", "signal", s.String())
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

// exitNow uses the signal's default action. If the signal is ignored, it exits with the code that a shell
// shows.
func exitNow(s os.Signal, log *slog.Logger) {
	log.Warn("stopping immediately after a second signal; other processes take over unfinished work when its leases expire", "signal", s.String())
	execaction.KillAll()
	signal.Reset(s)
	code := ExitFailed
	if n, ok := s.(syscall.Signal); ok {
		code = ExitSignal + int(n)
	}
	if p, err := os.FindProcess(os.Getpid()); err == nil && p.Signal(s) == nil {
		<-time.After(time.Second) // if the signal is ignored
	}
	os.Exit(code)
}
