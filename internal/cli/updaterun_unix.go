//go:build unix

package cli

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// startFilter starts the command as the leader of a process group of its own. That
// gets the terminal, if this process has one to give: a filter may ask for a
// password there, or be an editor. The caller calls leave when it has ended.
func startFilter(cmd *exec.Cmd) (leave func(), err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	file, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return func() {}, cmd.Start() // there is none
	}
	changes, stop := catch([]os.Signal{syscall.SIGCHLD, syscall.SIGCONT})
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGTTOU) // where it is ignored since an earlier run, the filter would ignore it
	err = cmd.Start()
	signal.Stop(heard)
	signal.Ignore(syscall.SIGTTOU)
	if err != nil {
		stop()
		_ = file.Close()
		return nil, err
	}
	tty := &terminal{file: file}
	over := make(chan struct{})
	var attending sync.WaitGroup
	attending.Go(func() { attend(cmd, tty, changes, over) })
	return func() {
		close(over)
		attending.Wait()
		stop()
		tty.takeBack()
		_ = file.Close() // it was only asked
	}, nil
}

// attend sees to it that the filter has the terminal, until it is over. One that
// was stopped for want of it, or from its keyboard, goes on: the shell knows only
// this process, and could not continue it. Where the shell brings this process to
// the front later, the filter gets the terminal then.
func attend(cmd *exec.Cmd, tty *terminal, changes caught, over <-chan struct{}) {
	tick := time.NewTicker(longestPause)
	defer tick.Stop()
	tty.give(cmd.Process.Pid)
	for {
		select {
		case <-changes:
		case <-tick.C:
			if tty.given {
				continue
			}
		case <-over:
			return
		}
		if tty.give(cmd.Process.Pid) {
			_ = signalGroup(cmd, syscall.SIGCONT) // which is nothing to one that is not stopped
		}
	}
}

// terminateFilter tells the filter to end, and all in its group. What is stopped
// has to go on to end.
func terminateFilter(cmd *exec.Cmd) error {
	err := signalGroup(cmd, syscall.SIGTERM)
	_ = signalGroup(cmd, syscall.SIGCONT) // it may have ended
	return err
}

// signalGroup signals the command, and all in its group.
func signalGroup(cmd *exec.Cmd, s syscall.Signal) error {
	err := syscall.Kill(-cmd.Process.Pid, s)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}
