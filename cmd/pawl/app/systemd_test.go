//go:build unix

package app

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// systemd returns a function that receives the next state.
func systemd(t *testing.T) (receive func() string) {
	name := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	t.Setenv("NOTIFY_SOCKET", name)
	return func() string {
		t.Helper()
		if err := l.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 100)
		n, err := l.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
}

func TestNotifySystemd(t *testing.T) {
	receive := systemd(t)
	NotifySystemd(slog.New(slog.DiscardHandler), "READY=1")
	if got := receive(); got != "READY=1" {
		t.Errorf("systemd received %q", got)
	}
}

func TestReportToSystemd(t *testing.T) {
	receive := systemd(t)
	ctx, stop := context.WithCancel(t.Context())
	var asked atomic.Int64
	end := ReportToSystemd(ctx, slog.New(slog.DiscardHandler), func() bool { return asked.Add(1) == 3 })
	if got := receive(); got != "READY=1" || asked.Load() != 3 {
		t.Errorf("systemd received %q after %d checks", got, asked.Load())
	}
	stop()
	if got := receive(); got != "STOPPING=1" {
		t.Errorf("systemd received %q", got)
	}
	end()

	end = ReportToSystemd(t.Context(), slog.New(slog.DiscardHandler), func() bool { return false })
	end()
	if got := receive(); got != "STOPPING=1" {
		t.Errorf("a process that was never ready sent %q", got)
	}
}
