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

// A guard writes these lines when it is ready, and when it ends the group.
const (
	guardReady = "ready"
	guardEnds  = "ends"
)

type guard struct {
	group           int
	supervisorGroup int
	grace           time.Duration // from SIGTERM to SIGKILL
	orphanGrace     time.Duration // upper bound after the supervisor's exit
	killAtOnce      bool
	report          func(string)
}

// Guard is the main function of the guard process of [Run]. The supervisor writes its settings and
// deadlines to in.
func Guard(in io.Reader, out io.Writer) error {
	g := guard{group: os.Getpid(), report: func(s string) { fmt.Fprintln(out, s) }}
	if syscall.Getpgrp() != g.group {
		return errors.New("a guard must be started by its supervisor: it would end the process group of others")
	}
	// These signals are for the command. SIGPIPE arrives if the supervisor has closed its end.
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

// A supervisor writes its settings once, and each deadline as the time left and as Unix time, in
// nanoseconds.
const (
	guardSettings = "%d %d %d %t"
	guardDeadline = "%d %d"
)

type countdown struct {
	since  time.Time
	length time.Duration
}

// left uses two clocks, because the monotonic clock stops while the machine sleeps.
func (c countdown) left(now time.Time) time.Duration {
	return c.length - max(now.Sub(c.since), now.Round(0).Sub(c.since.Round(0)))
}

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
			// The supervisor may have been stopped between its clock and its write.
			deadlines <- countdown{now, min(time.Duration(left), time.Unix(0, until).Sub(now))}
		}
	}()
	return deadlines
}

// clockPoll bounds every sleep, because timers stop while the machine sleeps.
const clockPoll = time.Second

func (g *guard) watch(deadlines <-chan countdown) {
	deadline, ok := <-deadlines
	if !ok {
		return // no command runs yet
	}
	g.report(guardReady)
	for {
		left := deadline.left(time.Now())
		if left <= 0 { // a guard that notices late shortens the grace
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
	// The guard leads the command's group. After its death, the group exists until the supervisor
	// has waited for the guard. A suspended supervisor could resume and start a command there.
	// Therefore the guard first moves to the supervisor's group. The move fails only if the
	// supervisor has exited.
	_ = syscall.Setpgid(0, g.supervisorGroup)
	_ = syscall.Kill(-g.group, syscall.SIGKILL)
}
