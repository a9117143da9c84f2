//go:build unix

package supervise

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// The lines that a guard writes: it is ready, and it ends the group.
const (
	guardReady = "ready"
	guardEnds  = "ends"
)

// guard ends a process group. It is a member of the group, and leads it.
type guard struct {
	group           int
	supervisorGroup int
	grace           time.Duration // from SIGTERM to SIGKILL
	orphanGrace     time.Duration // longest grace if the supervisor is gone
	killAtOnce      bool
	report          func(string)
}

// Guard is the guard process of [Run]: it ends its own process group when the deadline
// passes or the supervisor is gone. The supervisor writes its settings and deadlines to in.
func Guard(in io.Reader, out io.Writer) error {
	g := guard{group: os.Getpid(), report: func(s string) { fmt.Fprintln(out, s) }}
	if syscall.Getpgrp() != g.group {
		return errors.New("a guard must be started by its supervisor: it would end the process group of others")
	}
	// These signals are for the command. The supervisor's end of a pipe may be closed.
	signal.Ignore(append([]os.Signal{
		syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGPIPE,
	}, ForwardedSignals...)...)
	lines := bufio.NewScanner(in)
	if lines.Scan() {
		_, err := fmt.Sscanf(lines.Text(), guardSettings, &g.supervisorGroup, &g.grace, &g.orphanGrace, &g.killAtOnce)
		if err != nil {
			return fmt.Errorf("read the settings of the guard: %w", err)
		}
	}
	g.watch(readDeadlines(lines))
	return nil
}

// The lines that a supervisor writes: its settings once, then each deadline, as the time
// left and as Unix time, both in nanoseconds.
const (
	guardSettings = "%d %d %d %t"
	guardDeadline = "%d %d"
)

// countdown is a period that began at a time.
type countdown struct {
	since  time.Time
	length time.Duration
}

// left returns the remaining time by the clock that shows less: the monotonic clock stops
// while the machine sleeps.
func (c countdown) left(now time.Time) time.Duration {
	return c.length - max(now.Sub(c.since), now.Round(0).Sub(c.since.Round(0)))
}

// readDeadlines returns the deadlines that the supervisor writes, until its pipe ends or a
// line is malformed.
func readDeadlines(lines *bufio.Scanner) <-chan countdown {
	deadlines := make(chan countdown)
	go func() {
		defer close(deadlines)
		for lines.Scan() {
			var left, until int64
			now := time.Now()
			if n, _ := fmt.Sscanf(lines.Text(), guardDeadline, &left, &until); n != 2 {
				return
			}
			// The supervisor may have been stopped between reading its clock and writing.
			deadlines <- countdown{now, min(time.Duration(left), time.Unix(0, until).Sub(now))}
		}
	}()
	return deadlines
}

// clockPoll is the longest time between two reads of the clocks.
const clockPoll = time.Second

// watch waits until the deadline passes or the supervisor is gone, and ends the group.
func (g *guard) watch(deadlines <-chan countdown) {
	deadline, ok := <-deadlines
	if !ok {
		return // there is no command yet
	}
	g.report(guardReady)
	for {
		left := deadline.left(time.Now())
		if left <= 0 { // a late guard shortens the grace
			g.end(g.grace + left)
			return
		}
		select {
		case next, ok := <-deadlines:
			if !ok {
				g.end(min(g.orphanGrace, deadline.left(time.Now())+g.grace))
				return
			}
			deadline = next
		case <-time.After(min(left, clockPoll)):
		}
	}
}

// end terminates the group, and kills it after the grace.
func (g *guard) end(grace time.Duration) {
	g.report(guardEnds)
	if !g.killAtOnce {
		_ = syscall.Kill(-g.group, syscall.SIGTERM)
		_ = syscall.Kill(-g.group, syscall.SIGCONT)
		rest := countdown{time.Now(), grace}
		for left := grace; left > 0; left = rest.left(time.Now()) {
			<-time.After(min(left, clockPoll))
		}
	}
	// A dead leader keeps its group until its parent has waited for it. A supervisor that
	// is stopped and continued could start the command in that group. Therefore the leader leaves
	// the group first. If the supervisor's group is gone, the supervisor is gone.
	_ = syscall.Setpgid(0, g.supervisorGroup)
	_ = syscall.Kill(-g.group, syscall.SIGKILL)
}
