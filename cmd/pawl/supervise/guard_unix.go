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

// Lines that a guard writes. The first means that the guard is ready. The second means that it
// ends the group.
const (
	guardReady = "ready"
	guardEnds  = "ends"
)

// guard ends a process group. It is the leader of that group.
type guard struct {
	group           int
	supervisorGroup int
	grace           time.Duration // time from SIGTERM to SIGKILL
	orphanGrace     time.Duration // longest grace if the supervisor has exited
	killAtOnce      bool
	report          func(string)
}

// Guard is the main function of the guard process of [Run]. It ends its own process group when
// the deadline passes or the supervisor exits. The supervisor writes its settings and deadlines
// to in.
func Guard(in io.Reader, out io.Writer) error {
	g := guard{group: os.Getpid(), report: func(s string) { fmt.Fprintln(out, s) }}
	if syscall.Getpgrp() != g.group {
		return errors.New("a guard must be started by its supervisor: it would end the process group of others")
	}
	// The guard ignores these signals, because they are meant for the command. It ignores
	// SIGPIPE because the supervisor may have closed its end of the pipe.
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

// Lines that a supervisor writes. It writes its settings once. Then it writes each deadline as
// the time left and as Unix time, both in nanoseconds.
const (
	guardSettings = "%d %d %d %t"
	guardDeadline = "%d %d"
)

// countdown is a period together with its start.
type countdown struct {
	since  time.Time
	length time.Duration
}

// left returns the remaining time. It uses two clocks and returns the shorter time, because the
// monotonic clock stops while the machine sleeps.
func (c countdown) left(now time.Time) time.Duration {
	return c.length - max(now.Sub(c.since), now.Round(0).Sub(c.since.Round(0)))
}

// readDeadlines returns the deadlines that the supervisor writes. It ends when the pipe ends or
// a line is malformed.
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
			// The supervisor may have been stopped after it read its clock and before it wrote
			// the line.
			deadlines <- countdown{now, min(time.Duration(left), time.Unix(0, until).Sub(now))}
		}
	}()
	return deadlines
}

// clockPoll is the longest time between two reads of the clocks.
const clockPoll = time.Second

// watch waits until the deadline passes or the supervisor exits. Then it ends the group.
func (g *guard) watch(deadlines <-chan countdown) {
	deadline, ok := <-deadlines
	if !ok {
		return // the supervisor has not started a command yet
	}
	g.report(guardReady)
	for {
		left := deadline.left(time.Now())
		if left <= 0 { // if the guard notices the deadline late, it shortens the grace
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

// end terminates the group. After the grace it kills the group.
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
	// A dead leader keeps its group until its parent has waited for it. A supervisor that was
	// stopped and continued could then start the command in that group. Therefore the leader
	// leaves the group first. If the supervisor's own group no longer exists, the supervisor
	// has exited.
	_ = syscall.Setpgid(0, g.supervisorGroup)
	_ = syscall.Kill(-g.group, syscall.SIGKILL)
}
