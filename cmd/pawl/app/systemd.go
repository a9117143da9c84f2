package app

import (
	"log/slog"
	"net"
	"os"
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
