//go:build unix

package supervise

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// Config configures [Run].
type Config struct {
	// Guard is the argument that makes this program call [Guard].
	Guard string
	// Deadline returns when the group must have received the signal to end. Run calls it once per
	// Interval.
	Deadline func() time.Time
	Interval time.Duration
	// Grace is the time from SIGTERM to SIGKILL. KillAtOnce omits SIGTERM.
	Grace      time.Duration
	KillAtOnce bool
	// OrphanGrace bounds the grace after the supervisor's exit.
	OrphanGrace time.Duration
	// Signals are forwarded to the command.
	Signals <-chan os.Signal
}

// Result is the outcome of [Run].
type Result struct {
	Started      bool
	Status       syscall.WaitStatus // zero unless Started
	Expired      bool               // the guard ended the group
	Gone         bool               // all processes of the group have ended
	LongestStall time.Duration      // longest time during which the supervisor did not run
}

// ErrGuardEnded is the error of [Run] if the guard ended before the deadline.
var ErrGuardEnded = errors.New("the process that guards the command has ended, so the command was ended")

// StartError is the error of [Run] if the command cannot be started.
type StartError struct{ Err error }

func (e *StartError) Error() string { return "cannot start the command: " + e.Err.Error() }
func (e *StartError) Unwrap() error { return e.Err }

// group is a supervised process group. The guard leads it, so that the command is a member from its
// start, and the system does not reuse the group's ID.
type group struct {
	*Config
	id      int       // of the guard
	command *exec.Cmd // nil until started

	orders *os.File  // pipe to the guard
	sent   time.Time // last deadline
	ready  chan struct{}
	over   chan bool // the guard has ended; true if it ended the group
}

// Run runs cmd in a new process group under a guard. When cmd ends, it kills the rest of the group.
// When ctx ends, it terminates the group and returns the cause.
func Run(ctx context.Context, cmd *exec.Cmd, c Config) (r Result, err error) {
	g, err := startGuard(&c)
	if err != nil {
		return Result{Gone: true}, fmt.Errorf("cannot start the command's guard: %w", err)
	}
	defer func() { r.Expired, r.Gone = g.end() }()
	if err := g.awaitReady(ctx); err != nil {
		return r, err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: g.id}
	if err := cmd.Start(); err != nil {
		return r, &StartError{err}
	}
	g.command, r.Started = cmd, true
	r.LongestStall, err = g.watch(ctx)
	r.Status, _ = cmd.ProcessState.Sys().(syscall.WaitStatus)
	return r, err
}

func startGuard(c *Config) (*group, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	in, orders, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }()
	g := &group{Config: c, orders: orders, ready: make(chan struct{}), over: make(chan bool, 1)}
	cmd := exec.Command(self, c.Guard)
	cmd.Args[0] = os.Args[0]
	cmd.Stdin = in
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		_ = orders.Close()
		return nil, err
	}
	g.id = cmd.Process.Pid
	go func() {
		lines := bufio.NewScanner(out)
		if lines.Scan() && lines.Text() == guardReady {
			close(g.ready)
		}
		ended := lines.Scan() && lines.Text() == guardEnds
		_ = cmd.Wait()
		g.over <- ended
	}()
	return g, nil
}

func (g *group) awaitReady(ctx context.Context) error {
	err := g.send(guardSettings, syscall.Getpgrp(), g.Grace, g.OrphanGrace, g.KillAtOnce)
	if err == nil {
		err = g.renew()
	}
	if err == nil {
		select {
		case <-g.ready:
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return nil
		case ended := <-g.over:
			g.over <- ended // end reads it
			err = errors.New("it exited during startup")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return fmt.Errorf("cannot start the command's guard: %w", err)
}

// renew sends the time left, and also the time itself, because this process may stop between its
// clock and the write.
func (g *group) renew() error {
	deadline := g.Deadline()
	if deadline.Equal(g.sent) {
		return nil
	}
	g.sent = deadline
	return g.send(guardDeadline, time.Until(deadline), deadline.UnixNano())
}

func (g *group) send(format string, args ...any) error {
	_ = g.orders.SetWriteDeadline(time.Now().Add(time.Second)) // a stopped guard does not read
	_, err := fmt.Fprintf(g.orders, format+"\n", args...)
	return err
}

// Like timeout(1), signalAll also signals a command that has left the group.
func (g *group) signalAll(n syscall.Signal) {
	_ = syscall.Kill(-g.id, n)
	if g.command == nil {
		return
	}
	if own, err := syscall.Getpgid(g.command.Process.Pid); err == nil && own != g.id {
		_ = g.command.Process.Signal(n)
	}
}

// forward also sends SIGCONT, because a stopped process does not handle the other signals.
func (g *group) forward(s os.Signal) {
	n, ok := s.(syscall.Signal)
	if !ok {
		return
	}
	g.signalAll(n)
	if n == syscall.SIGHUP || n == syscall.SIGTERM || n == syscall.SIGINT {
		g.signalAll(syscall.SIGCONT)
	}
}

// The returned channel receives a value when the grace is over.
func (g *group) terminate() <-chan time.Time {
	if g.KillAtOnce {
		g.signalAll(syscall.SIGKILL)
		return nil
	}
	g.signalAll(syscall.SIGTERM)
	g.signalAll(syscall.SIGCONT)
	return time.After(g.Grace)
}

// watch returns the reason if Run ended the command.
func (g *group) watch(ctx context.Context) (longestStall time.Duration, why error) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = g.command.Wait()
	}()
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	tick := time.NewTicker(g.Interval)
	defer tick.Stop()
	done, over := ctx.Done(), g.over
	var graceOver <-chan time.Time
	last := time.Now()
	for {
		unguarded := false
		select {
		case <-ended:
			return longestStall, why
		case s := <-g.Signals:
			g.forward(s)
		case <-continued: // a shell's fg must also continue the command
			g.signalAll(syscall.SIGCONT)
		case <-done:
			done, why = nil, context.Cause(ctx)
			graceOver = g.terminate()
		case <-graceOver:
			g.signalAll(syscall.SIGKILL)
		case <-tick.C:
			unguarded = g.renew() != nil
		case expired := <-over:
			over, unguarded = nil, true
			g.over <- expired // end reads it
		}
		now := time.Now()
		longestStall, last = max(longestStall, -countdown{since: last}.left(now)), now
		if unguarded {
			if why == nil {
				why = ErrGuardEnded
			}
			g.signalAll(syscall.SIGKILL)
		}
	}
}

const killTimeout = 5 * time.Second

func (g *group) end() (expired, gone bool) {
	_ = syscall.Kill(-g.id, syscall.SIGKILL)
	_ = g.orders.Close()
	expired = <-g.over
	limit := time.After(killTimeout)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		// As the init process of a container, this process must reap orphans.
		for pid := 1; pid > 0; {
			pid, _ = syscall.Wait4(-g.id, nil, syscall.WNOHANG, nil)
		}
		if errors.Is(syscall.Kill(-g.id, 0), syscall.ESRCH) {
			return expired, true
		}
		select {
		case <-tick.C:
		case <-limit:
			return expired, false
		}
	}
}
