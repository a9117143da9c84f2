//go:build unix

package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/pawlhq/pawl/lock"
)

// ward is a process group that is under guard. The guard leads it, and is there
// before the command: a member is in it from birth, and its number is not given
// to another group while the guard is there.
type ward struct {
	id      int // of the group: the guard's process
	hurry   bool
	grace   time.Duration // from SIGTERM to SIGKILL
	every   time.Duration // between two looks at the lease
	inFront bool          // it has the terminal

	orders *os.File  // to the guard
	told   time.Time // the deadline that the guard knows
	over   chan bool // the guard has ended, and whether it ended the group
}

// errNoGuard is why a command is ended that runs under a good lease.
var errNoGuard = errors.New("the process that guards the command has ended, so the command was ended")

// longestGrace bounds what a command that is told to end has left: others may
// hold the lock already.
const longestGrace = 10 * time.Second

// startGuard starts the guard, and returns when it is ready. The lease's context
// ends an eighth of its time before others can enter: half of that is left to a
// command that is told to end.
func startGuard(lease *lock.Lease, o *lockOptions) (*ward, error) {
	w := &ward{
		hurry: o.onLost == onLostKill, grace: min(o.config.TTL/16, longestGrace), every: o.config.TTL / 12,
		over: make(chan bool, 1),
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find this program, of which the command's guard is a process: %w", err)
	}
	in, orders, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("cannot start the command's guard: %w", err)
	}
	defer func() { _ = in.Close() }()
	w.orders = orders
	cmd := exec.Command(self, guardName, "--grace", w.grace.String(), "--on-lost", o.onLost,
		"--back-to", strconv.Itoa(syscall.Getpgrp()))
	cmd.Args[0] = os.Args[0]
	cmd.Stdin = in
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	words, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		_ = orders.Close()
		return nil, fmt.Errorf("cannot start the command's guard: %w", err)
	}
	w.id = cmd.Process.Pid
	ready := make(chan struct{})
	go func() {
		said := bufio.NewScanner(words)
		if said.Scan() && said.Text() == guardReady {
			close(ready)
		}
		ended := said.Scan() && said.Text() == guardOver
		_ = cmd.Wait() // how it ended is of no interest
		w.over <- ended
	}()
	return w, w.begin(lease, ready)
}

// begin waits until the guard knows the lease, and ignores signals.
func (w *ward) begin(lease *lock.Lease, ready <-chan struct{}) error {
	err := w.tell(lease.Deadline())
	if err == nil {
		select {
		case <-ready:
			return nil
		case ended := <-w.over:
			w.over <- ended
			err = errors.New("it ended at once")
		case <-lease.Context().Done():
			return nil // the command will not be started
		}
	}
	w.end()
	return fmt.Errorf("cannot start the command's guard: %w", err)
}

// tell tells the guard of a new deadline: how much is left, and when that is by
// the clock that both have, should this process stand still between the two.
func (w *ward) tell(deadline time.Time) error {
	if deadline.Equal(w.told) {
		return nil
	}
	w.told = deadline
	_ = w.orders.SetWriteDeadline(time.Now().Add(time.Second)) // a guard that is stopped reads nothing
	_, err := fmt.Fprintf(w.orders, "%d %d\n", time.Until(deadline), deadline.UnixNano())
	return err
}

// run starts the command in the group.
func (w *ward) run(path string, command, env []string) (pid int, err error) {
	p, err := os.StartProcess(path, command, &os.ProcAttr{
		Env: env, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys: &syscall.SysProcAttr{Setpgid: true, Pgid: w.id},
	})
	if err != nil {
		return 0, err
	}
	pid = p.Pid
	return pid, p.Release() // watch waits for it, also while it is stopped
}

// signal sends a signal to the whole group.
func (w *ward) signal(s os.Signal) {
	if n, ok := s.(syscall.Signal); ok {
		_ = syscall.Kill(-w.id, n) // nobody is there any more
	}
}

// watch waits for the end of the command, and returns it, and why it was ended if
// it was.
func (w *ward) watch(lease *lock.Lease, pid int, signals caught) (status syscall.WaitStatus, why error) {
	exited := w.await(pid)
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	lost, over := lease.Context().Done(), w.over
	var hard <-chan time.Time
	for {
		unguarded := false
		select {
		case status := <-exited:
			return status, why
		case s := <-signals:
			w.signal(s)
		case <-lost:
			lost, why = nil, context.Cause(lease.Context())
			hard = w.terminate()
		case <-hard:
			w.signal(syscall.SIGKILL)
		case <-tick.C:
			unguarded = w.tell(lease.Deadline()) != nil
		case ended := <-over:
			over, unguarded = nil, true
			w.over <- ended // for end
		}
		if unguarded {
			if why == nil {
				why = errNoGuard
			}
			w.signal(syscall.SIGKILL)
		}
	}
}

// terminate tells the command to end. It returns when to kill it.
func (w *ward) terminate() <-chan time.Time {
	if w.hurry {
		w.signal(syscall.SIGKILL)
		return nil
	}
	w.signal(syscall.SIGTERM)
	return time.After(w.grace)
}

// await waits for the end of the command. One that its terminal stops goes on at
// once: it would keep the lock, and the shell knows only this process.
func (w *ward) await(pid int) <-chan syscall.WaitStatus {
	exited := make(chan syscall.WaitStatus, 1)
	go func() {
		for {
			var s syscall.WaitStatus
			_, err := syscall.Wait4(pid, &s, syscall.WUNTRACED, nil)
			switch {
			case errors.Is(err, syscall.EINTR):
			case err == nil && s.Stopped():
				if w.inFront && s.StopSignal() == syscall.SIGTSTP {
					w.signal(syscall.SIGCONT)
				}
			default:
				exited <- s
				return
			}
		}
	}()
	return exited
}

// endTime is how long processes may take to die after SIGKILL.
const endTime = 5 * time.Second

// end kills the guard, and what is left of the group. It returns whether the guard
// had ended the group before, and whether nothing is left.
func (w *ward) end() (ended, gone bool) {
	w.signal(syscall.SIGKILL)
	_ = w.orders.Close()
	ended = <-w.over
	limit := time.After(endTime)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		// The orphans that this process has adopted, or is the init of.
		for pid := 1; pid > 0; {
			pid, _ = syscall.Wait4(-w.id, nil, syscall.WNOHANG, nil)
		}
		if errors.Is(syscall.Kill(-w.id, 0), syscall.ESRCH) {
			return ended, true
		}
		select {
		case <-tick.C:
		case <-limit:
			return ended, false
		}
	}
}
