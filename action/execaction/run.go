package execaction

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"sync"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/action"
)

// EX_DATAERR of sysexits.h: invalid input
const exitDataErr = 65

const objectsForOutage = 5

type execution struct {
	*handler
	facts       []string
	content     io.Reader // nil if the object was removed
	stopReading func()    // makes a blocked Read of content return
	output      io.Writer // nil if the pipeline has no output

	stdout, stderr tail
	written        int64
	writeErr       error
	stop           context.CancelCauseFunc
}

func (r *execution) execute(ctx context.Context) error {
	ctx, cancelTimeout := context.WithTimeoutCause(ctx, r.timeout, fmt.Errorf("it ran longer than %v (timeout)", r.timeout))
	defer cancelTimeout()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.stop = cancel

	cmd := exec.CommandContext(ctx, r.path)
	cmd.Args = r.command
	cmd.Env = slices.Concat(r.env, r.facts)
	cmd.Stdout, cmd.Stderr = &r.stdout, &r.stderr
	if r.output != nil {
		cmd.Stdout = writerFunc(r.write)
	}
	cmd.Cancel = func() error { return terminate(cmd.Process) }
	cmd.WaitDelay = r.grace
	release := isolate(cmd)
	defer release()

	feed, err := r.newFeeder(cmd, cancel)
	if err != nil {
		return err
	}
	if err := running.start(cmd); err != nil {
		running.waitIfExiting(ctx)
		return r.resultOf(ctx, err)
	}
	var feeding sync.WaitGroup
	feeding.Go(feed)
	err = r.resultOf(ctx, cmd.Wait())
	running.killRemaining(cmd.Process)
	r.stopReading()
	feeding.Wait()
	running.waitIfExiting(ctx)
	return err
}

// newFeeder returns a function that copies the content to standard input. If reading fails, it
// leaves standard input open, so that the command cannot mistake a part for the whole.
func (r *execution) newFeeder(cmd *exec.Cmd, cancel context.CancelCauseFunc) (func(), error) {
	if r.content == nil {
		return func() {}, nil
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", r.name(), err)
	}
	return func() {
		var broken error
		read := func(b []byte) (int, error) {
			n, err := r.content.Read(b)
			if err != nil && !errors.Is(err, io.EOF) {
				broken = err
			}
			return n, err
		}
		// The command need not read all of its input.
		_, _ = io.Copy(stdin, readerFunc(read))
		if broken != nil {
			cancel(fmt.Errorf("reading its input failed: %w", broken))
			return
		}
		_ = stdin.Close()
	}, nil
}

func (r *execution) write(b []byte) (int, error) {
	if r.written += int64(len(b)); r.written > r.maxOutput {
		err := pawl.Permanent(fmt.Errorf("its output has more than %d bytes: set a larger max_output, if that is right", r.maxOutput))
		r.stop(err) // the command may not notice that its pipe is closed
		return 0, err
	}
	n, err := r.output.Write(b)
	if err != nil {
		r.writeErr = err
	}
	return n, err
}

func (r *execution) resultOf(ctx context.Context, err error) error {
	exit, exited := errors.AsType[*exec.ExitError](err)
	lingers := errors.Is(err, exec.ErrWaitDelay) // the command exited with 0, but another process keeps its output open
	switch {
	case err == nil, lingers && r.output == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s was stopped: %w%s", r.name(), context.Cause(ctx), r.stderrExcerpt())
	case r.writeErr != nil:
		return fmt.Errorf("%s was stopped: %w", r.name(), r.writeErr)
	case lingers:
		return fmt.Errorf("%s left a process that keeps its output open: make the command wait for it", r.name())
	case exited && exit.ExitCode() == exitDataErr:
		return pawl.Permanent(fmt.Errorf("%s rejected its input: %w%s", r.name(), err, r.stderrExcerpt()))
	}
	err = fmt.Errorf("%s failed: %w%s", r.name(), err, r.stderrExcerpt())
	if exited {
		return pawl.OutageIfShared(err, exit.String(), objectsForOutage)
	}
	return err
}

func (r *execution) stderrExcerpt() string {
	if b := bytes.TrimSpace(r.stderr.last); len(b) > 0 {
		return ": " + action.Excerpt(b)
	}
	return ""
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
