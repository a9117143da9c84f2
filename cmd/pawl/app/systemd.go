package app

import (
	"context"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/pawlhq/pawl/internal/process"
)

// NotifySystemd sends a state, such as READY=1 or STOPPING=1, to the service manager that started this
// process, if there is one: https://www.freedesktop.org/software/systemd/man/sd_notify.html
func NotifySystemd(log *slog.Logger, state string) {
	name := os.Getenv("NOTIFY_SOCKET") // a leading @ stands for the abstract namespace, also in package net
	if name == "" {
		return
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err == nil {
		_, err = c.Write([]byte(state))
		_ = c.Close()
	}
	if err != nil {
		log.Warn("could not notify systemd", "state", state, "error", err)
	}
}

// ReportToSystemd sends READY=1 when ready returns true, and STOPPING=1 when ctx ends or end is called. end
// waits until both are done.
func ReportToSystemd(ctx context.Context, log *slog.Logger, ready func() bool) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() {
		for !ready() {
			if process.Sleep(ctx, 200*time.Millisecond) != nil {
				break
			}
		}
		if ctx.Err() == nil {
			NotifySystemd(log, "READY=1")
		}
		<-ctx.Done()
		NotifySystemd(log, "STOPPING=1")
	})
	return func() { cancel(); work.Wait() }
}
