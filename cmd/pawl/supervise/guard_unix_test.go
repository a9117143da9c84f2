//go:build unix

package supervise

import (
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/virtualtime"
)

func TestGraceBeginsWhenTheSupervisorIsGone(t *testing.T) {
	const deadline, grace = 3 * time.Second, 500 * time.Millisecond
	for _, after := range []time.Duration{0, deadline / 2, deadline - time.Millisecond, deadline, 10 * deadline} {
		for _, c := range []struct {
			guard
			first syscall.Signal
			least time.Duration
		}{
			{guard{orphanGrace: time.Second}, syscall.SIGTERM, min(after+time.Second, deadline+grace)},
			{guard{killAtOnce: true}, syscall.SIGKILL, min(after, deadline)},
			{guard{}, syscall.SIGTERM, min(after, deadline)},
		} {
			command := exec.Command("sleep", "600")
			command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			c.group, c.supervisorGroup, c.grace, c.report = command.Process.Pid, syscall.Getpgrp(), grace, func(string) {}
			over := runGuard(t, &c.guard, deadline, after)
			if most := deadline + grace; over < c.least || over > most {
				t.Errorf("a supervisor gone after %v: the guard was done after %v, want %v to %v", after, over, c.least, most)
			}
			_ = command.Wait()
			if status, ok := command.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != c.first {
				t.Errorf("a supervisor gone after %v: %v, want %v", after, command.ProcessState, c.first)
			}
		}
	}
}

func runGuard(t *testing.T, g *guard, deadline, after time.Duration) (over time.Duration) {
	virtualtime.Test(t, func(*testing.T) {
		began := time.Now()
		deadlines, ended := make(chan countdown), make(chan struct{})
		go func() {
			defer close(ended)
			g.watch(deadlines)
			over = time.Since(began)
		}()
		deadlines <- countdown{began, deadline}
		<-time.After(after)
		close(deadlines)
		<-ended
	})
	return over
}
