//go:build unix

package lockcmd

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
	id    int // of the group: the guard's process
	child int // the command's process; 0 when it has ended
	hurry bool
	grace time.Duration // from SIGTERM to SIGKILL
	every time.Duration // between two looks at the lease

	orders *os.File  // to the guard
	told   time.Time // the deadline that the guard knows
	over   chan bool // the guard has ended, and whether it ended the group

	stood time.Duration // the longest time between two looks
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
func (w *ward) run(path string, command, env []string) error {
	p, err := os.StartProcess(path, command, &os.ProcAttr{
		Env: env, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys: &syscall.SysProcAttr{Setpgid: true, Pgid: w.id},
	})
	if err != nil {
		return err
	}
	w.child = p.Pid
	return p.Release() // await waits for it, also while it is stopped
}

// signal sends a signal to the group, and to the command itself if it has left the
// group, as timeout(1) does. This process waits for the command.
func (w *ward) signal(n syscall.Signal) {
	_ = syscall.Kill(-w.id, n) // the group may have ended
	if w.child == 0 {
		return
	}
	if own, err := syscall.Getpgid(w.child); err == nil && own != w.id {
		_ = syscall.Kill(w.child, n) // it may have ended
	}
}

// forward passes a signal on. One that is stopped has to go on to end.
func (w *ward) forward(s os.Signal) {
	n, ok := s.(syscall.Signal)
	if !ok {
		return
	}
	w.signal(n)
	if n == syscall.SIGHUP || n == syscall.SIGTERM || n == syscall.SIGINT {
		w.signal(syscall.SIGCONT)
	}
}

// watch waits for the end of the command, and returns it, and why it was ended if
// it was.
func (w *ward) watch(lease *lock.Lease, signals, children caught) (status syscall.WaitStatus, why error) {
	continued, stop := catch([]os.Signal{syscall.SIGCONT})
	defer stop()
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	lost, over := lease.Context().Done(), w.over
	var hard <-chan time.Time
	looked := time.Now()
	for {
		unguarded := false
		select {
		case <-children:
		case s := <-signals:
			w.forward(s)
		case <-continued: // fg continues the command, too
			w.signal(syscall.SIGCONT)
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
		now := time.Now()
		w.stood, looked = max(w.stood, -countdown{since: looked}.left(now)), now
		if status, ended := w.await(); ended {
			return status, why
		}
		if unguarded {
			if why == nil {
				why = errNoGuard
			}
			w.signal(syscall.SIGKILL)
		}
	}
}

// dueTime is what the loss of a lease gets to show, when its guard has noticed it
// before the holder has.
const dueTime = time.Second

// whyEnded says why the guard ended the group. That this process stood still is
// known where it has not looked for half of the TTL: otherwise it had the time to
// renew the lease, and to tell of it.
func (w *ward) whyEnded(lease *lock.Lease) error {
	select {
	case <-lease.Context().Done():
		if why := context.Cause(lease.Context()); errors.Is(why, lock.ErrLost) {
			return why
		}
	case <-time.After(dueTime):
	}
	if w.stood >= 6*w.every {
		return fmt.Errorf("%w: this process stood still for %v", lock.ErrLost, w.stood.Round(time.Millisecond))
	}
	return fmt.Errorf("%w: the lease was over before the guard of the command heard that it was renewed", lock.ErrLost)
}

// terminate tells the command to end. It returns when to kill it.
func (w *ward) terminate() <-chan time.Time {
	if w.hurry {
		w.signal(syscall.SIGKILL)
		return nil
	}
	w.signal(syscall.SIGTERM)
	w.signal(syscall.SIGCONT)
	return time.After(w.grace)
}

// await reports whether the command has ended, and how.
func (w *ward) await() (s syscall.WaitStatus, ended bool) {
	for {
		pid, err := syscall.Wait4(w.child, &s, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err == nil && pid == 0:
			return s, false
		}
		w.child = 0
		return s, true
	}
}

// endTime is how long processes may take to die after SIGKILL.
const endTime = 5 * time.Second

// end kills the guard, and what is left of the command. It returns whether the
// guard had ended it before, and whether nothing is left.
func (w *ward) end() (ended, gone bool) {
	w.signal(syscall.SIGKILL)
	_ = w.orders.Close()
	ended = <-w.over
	limit := time.After(endTime)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		// Orphans, if this process is the init of a container.
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
