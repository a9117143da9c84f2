package rig

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
)

// Process is a child process with a log file.
type Process struct {
	*os.Process
	Log string

	done chan struct{}
	err  error // valid after done is closed
}

// Start starts a command, and appends its output to the log file.
func Start(cmd *exec.Cmd, log string) (*Process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = out, out
	err = cmd.Start()
	if err := errors.Join(err, out.Close()); err != nil {
		return nil, err
	}
	p := &Process{Process: cmd.Process, Log: log, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err waits for the end, and returns the error of [exec.Cmd.Wait].
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// Ended reports whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Kill waits until the process has ended.
func (p *Process) Kill() {
	_ = p.Process.Kill()
	<-p.done
}

// Terminate asks the process to shut down.
func (p *Process) Terminate() {
	if p.Signal(terminateSignal) != nil {
		_ = p.Process.Kill() // no signals on this system, or it has ended
	}
}

// LogTail returns the end of the log.
func (p *Process) LogTail() string {
	const most = 2 << 10
	file, err := os.Open(p.Log)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = file.Close() }()
	if size, err := file.Seek(0, io.SeekEnd); err == nil {
		_, _ = file.Seek(max(0, size-most), io.SeekStart)
	}
	text, err := io.ReadAll(io.LimitReader(file, most))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// FreeAddress returns a loopback address that was free a moment ago.
func FreeAddress(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
