package execaction

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"
)

// KillAll kills the process groups of all running commands, and prevents new ones. Call it before
// the process exits without waiting for its handlers, because on most systems nothing else ends
// the commands.
func KillAll() { running.killAll() }

var running processGroups

type processGroups struct {
	mu      sync.Mutex
	leaders map[*os.Process]struct{}
	closed  bool
}

var errClosed = errors.New("the process is shutting down")

func (g *processGroups) start(cmd *exec.Cmd) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return errClosed
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if g.leaders == nil {
		g.leaders = map[*os.Process]struct{}{}
	}
	g.leaders[cmd.Process] = struct{}{}
	return nil
}

func (g *processGroups) killRemaining(leader *os.Process) {
	g.mu.Lock()
	defer g.mu.Unlock()
	kill(leader)
	delete(g.leaders, leader)
}

func (g *processGroups) killAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for leader := range g.leaders {
		kill(leader)
	}
}

// waitIfExiting blocks until ctx ends if killAll was called, because a killed command must not
// count as a failure of the object.
func (g *processGroups) waitIfExiting(ctx context.Context) {
	g.mu.Lock()
	closed := g.closed
	g.mu.Unlock()
	if closed {
		<-ctx.Done()
	}
}
