package demo

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// worker is one process of this very binary.
type worker struct {
	number       int // from 1
	pid          int
	webhook, log string
	api          string // once it is ready

	process *os.Process
	done    chan struct{} // closed when it has ended
}

var errEnded = errors.New("the worker ended at once")

// launch starts the n-th worker over the configuration in dir.
func launch(dir string, n int, binary string, command, env []string) (*worker, error) {
	log := filepath.Join(dir, fmt.Sprintf("worker-%d.log", n))
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(binary, slices.Concat(command, []string{"-c", filepath.Join(dir, configFile), "--log-level", "debug"})...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, out, out
	setApart(cmd)
	err = cmd.Start()
	if err := errors.Join(err, out.Close()); err != nil {
		return nil, err
	}
	w := &worker{
		number: n, pid: cmd.Process.Pid, log: log,
		process: cmd.Process, done: make(chan struct{}),
	}
	go func() {
		_ = cmd.Wait() // how it ended is of no interest
		close(w.done)
	}()
	return w, nil
}

func (w *worker) ended() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// kill ends the process as kill -9 does, and returns when it is gone.
func (w *worker) kill() {
	_ = w.process.Kill() // fails only when it has ended
	<-w.done
}

// terminate asks the process to end in order.
func (w *worker) terminate() {
	if w.process.Signal(softly) != nil {
		_ = w.process.Kill() // a system without signals, or it has ended
	}
}

func (w *worker) String() string { return fmt.Sprintf("worker %d (pid %d)", w.number, w.pid) }

// lastWords are the end of the worker's log.
func (w *worker) lastWords() string {
	const most = 2 << 10
	file, err := os.Open(w.log)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = file.Close() }() // it was only read from
	if size, err := file.Seek(0, io.SeekEnd); err == nil {
		_, _ = file.Seek(max(0, size-most), io.SeekStart)
	}
	text, err := io.ReadAll(io.LimitReader(file, most))
	if err != nil {
		return err.Error()
	}
	return string(text)
}
