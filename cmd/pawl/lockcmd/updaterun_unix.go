//go:build unix

package lockcmd

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// startFilter starts the command as the leader of a process group of its own, behind
// the one in front of the terminal: the keyboard's signals are for this process. A
// filter may still ask for a password there, or be an editor. The caller calls leave
// when it has ended.
func startFilter(cmd *exec.Cmd) (leave func(), err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	file, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return func() {}, cmd.Start() // there is none
	}
	changes, stop := catch([]os.Signal{syscall.SIGCHLD, syscall.SIGCONT})
	if err := startToBeStopped(cmd); err != nil {
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

// startToBeStopped starts the command, which does not ignore what this process
// ignores since it has taken the terminal back from the filter before.
func startToBeStopped(cmd *exec.Cmd) error {
	if signal.Ignored(syscall.SIGTTOU) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGTTOU)
		defer signal.Ignore(syscall.SIGTTOU)
	}
	return cmd.Start()
}

// attend gives the terminal to a filter that asks for it, until it is over. Asking
// stops the filter, and it goes on with what it has asked for.
func attend(cmd *exec.Cmd, tty *terminal, changes caught, over <-chan struct{}) {
	var again <-chan time.Time
	for {
		select {
		case s := <-changes:
			if by, ok := stopSignal(cmd.Process.Pid); ok {
				tty.stopped(by)
			}
			if s == syscall.SIGCONT { // by a shell, which means the filter, too
				_ = signalGroup(cmd, syscall.SIGCONT) // it may have ended
			}
		case <-again:
		case <-over:
			return
		}
		if tty.satisfy(cmd.Process.Pid) {
			_ = signalGroup(cmd, syscall.SIGCONT) // it may have ended
		}
		again = nil
		if tty.wanted {
			again = time.After(longestPause) // a shell that brings this process to the front may say nothing
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
