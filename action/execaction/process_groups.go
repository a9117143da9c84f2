package execaction

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"
)

// KillAll kills the process groups of all commands that run, and lets no more
// start. It is for a process that is about to exit without waiting for its
// handlers: on most systems nothing else would end what it has started.
func KillAll() { running.killAll() }

// started is what this process has started.
var running processGroups

// groups are the process groups that may have members, by their leaders.
type processGroups struct {
	mu      sync.Mutex
	leaders map[*os.Process]struct{}
	closed  bool
}

var errClosed = errors.New("the process is shutting down")

// start starts a command. From then on, killAll finds it.
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

// end kills what is left of a group whose leader has ended.
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

// sitOut waits for the end of the process, or of ctx, once killAll was called:
// that a command was killed then is not the object's failure, and must not be
// written down as one.
func (g *processGroups) waitIfExiting(ctx context.Context) {
	g.mu.Lock()
	closed := g.closed
	g.mu.Unlock()
	if closed {
		<-ctx.Done()
	}
}
