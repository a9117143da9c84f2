//go:build unix

package lockcmd

import (
	"os/exec"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestGuardOfAHolderThatIsGone: what the command has left is counted from when the
// holder is gone, and not from when the guard has looked before.
func TestGuardOfAHolderThatIsGone(t *testing.T) {
	const lease, grace = 3 * time.Second, 500 * time.Millisecond
	for _, after := range []time.Duration{0, lease / 2, lease - time.Millisecond, lease, 10 * lease} {
		for _, c := range []struct {
			guard
			told  syscall.Signal // to the command, first
			least time.Duration  // until it is killed
		}{
			{guard{}, syscall.SIGTERM, min(after+time.Second, lease+grace)},
			{guard{hurry: true}, syscall.SIGKILL, min(after, lease)},
			{guard{within: true}, syscall.SIGTERM, min(after, lease)},
		} {
			command := exec.Command("sleep", "600")
			command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			c.group, c.backTo, c.grace, c.say = command.Process.Pid, syscall.Getpgrp(), grace, func(string) {}
			over := leaves(t, &c.guard, lease, after)
			if most := lease + grace; over < c.least || over > most {
				t.Errorf("a holder gone after %v: the guard was done after %v, want %v to %v", after, over, c.least, most)
			}
			_ = command.Wait() // it was killed
			if status, ok := command.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != c.told {
				t.Errorf("a holder gone after %v: %v, want %v", after, command.ProcessState, c.told)
			}
		}
	}
}

// leaves tells a guard of a lease, and leaves it after some time. It returns when the
// guard was done.
func leaves(t *testing.T, g *guard, lease, after time.Duration) (over time.Duration) {
	synctest.Test(t, func(*testing.T) {
		began := time.Now()
		terms, ended := make(chan countdown), make(chan struct{})
		go func() {
			defer close(ended)
			g.watch(terms)
			over = time.Since(began)
		}()
		terms <- countdown{began, lease}
		<-time.After(after)
		close(terms)
		<-ended
	})
	return over
}
