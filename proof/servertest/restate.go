package servertest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// RestateServer is a running Restate server, on Unix sockets.
type RestateServer struct {
	// Ingress and Admin ignore the host in a URL.
	Ingress, Admin *http.Client
}

// Restate starts the server from npm packages in a folder.
func Restate(t testing.TB, folder string) *RestateServer {
	t.Helper()
	dir, err := os.MkdirTemp("", "restate-") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	client := func(name string) *http.Client {
		path := filepath.Join(dir, "data", "pawl", name+".sock")
		return &http.Client{Transport: &http.Transport{
			MaxIdleConnsPerHost: 1000,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", path)
			},
		}}
	}
	s := &RestateServer{Ingress: client("ingress"), Admin: client("admin")}
	// npm installs only the program for this platform.
	programs, err := filepath.Glob(filepath.Join(folder, "node_modules", "@restatedev", "restate-server-*", "bin", "restate-server"))
	if err != nil || len(programs) != 1 {
		t.Fatalf("%s holds %d programs of Restate, %v: want one: Restate may not support this machine", folder, len(programs), err)
	}
	start(t, "restate", func(string) *exec.Cmd {
		cmd := exec.Command(programs[0],
			"--no-logo", "--listen-mode", "unix", "--node-name", "pawl", "--base-dir", filepath.Join(dir, "data"))
		cmd.Env, cmd.Dir = environment(dir, "DO_NOT_TRACK=1", "RUST_LOG=error"), dir
		return cmd
	}, s.ready)
	return s
}

func (s *RestateServer) ready(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://restate/health", nil)
	if err != nil {
		return err
	}
	resp, err := s.Admin.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("health check: %s", resp.Status)
	}
	return nil
}
