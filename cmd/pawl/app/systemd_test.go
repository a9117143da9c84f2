//go:build unix

package app

import (
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"
)

func TestNotifySystemd(t *testing.T) {
	name := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("NOTIFY_SOCKET", name)
	NotifySystemd(slog.New(slog.DiscardHandler), "READY=1")
	if err := l.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	if n, err := l.Read(b); err != nil || string(b[:n]) != "READY=1" {
		t.Errorf("systemd received %q (%v)", b[:n], err)
	}
}
