//go:build unix

package cli

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
	const lease, grace = 800 * time.Millisecond, 125 * time.Millisecond
	for _, after := range []time.Duration{0, lease / 2, lease - time.Millisecond, lease, 10 * lease} {
		command := exec.Command("sleep", "600")
		command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			var over time.Duration // when it was killed
			began := time.Now()
			terms, ended := make(chan countdown), make(chan struct{})
			g := guard{group: command.Process.Pid, mark: "nobody has this one", backTo: syscall.Getpgrp(), grace: grace, say: func(string) {}}
			go func() {
				defer close(ended)
				g.watch(terms)
				over = time.Since(began)
			}()
			terms <- countdown{began, lease}
			<-time.After(after)
			close(terms)
			<-ended
			if most := lease + grace + 50*time.Millisecond; over > most { // it looks twice for what has the mark
				t.Errorf("a holder gone after %v: killed after %v, want %v", after, over, most)
			}
		})
		_ = command.Wait() // it was killed
	}
}
