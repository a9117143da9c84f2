package webhooksource

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"

	"github.com/pawlhq/pawl/event"
)

// isLoopback does not resolve other names, because their addresses may change.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

func namesLoopback(host string) bool {
	if name, port, err := net.SplitHostPort(host); err == nil {
		if strings.Trim(port, "0123456789") != "" {
			return false
		}
		host = name
	}
	return isLoopback(strings.Trim(host, "[]"))
}

func errExposed(listen string) error {
	return fmt.Errorf("webhook: listening on %s accepts notifications from every machine in the network: "+
		"set a token or a secret, or listen on 127.0.0.1", event.Quote(listen))
}

func (s *Source) listen(ctx context.Context) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", s.cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("webhook: cannot listen on %s: %s: %w", event.Quote(s.cfg.Listen), listenHint(err), err)
	}
	// The hosts file may map "localhost" to another address.
	if tcp, ok := l.Addr().(*net.TCPAddr); s.auth.allowsAll() && (!ok || !tcp.IP.IsLoopback()) {
		return nil, errors.Join(errExposed(l.Addr().String()), l.Close())
	}
	return l, nil
}

func listenHint(err error) string {
	var dns *net.DNSError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "another process uses this address: stop it, or listen on another port"
	case errors.Is(err, syscall.EACCES):
		return "permission denied: listen on a port above 1023"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "this machine does not have this address: listen on one of its own"
	case errors.As(err, &dns):
		return "unknown host: use an address of this machine"
	}
	return "choose another address"
}
