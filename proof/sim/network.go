package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/internal/simkit"
)

type request func() error

func (r request) Run() { _ = r() }

func (w *World) latency() time.Duration { return w.Tape.UpTo(40 * time.Millisecond) }

const timeout = 10 * time.Second

func (t *thread) checkAlive(ctx context.Context) error {
	if t.dead() {
		return errDead
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", bucket.ErrUnavailable, context.Cause(ctx))
	}
	return nil
}

func (t *thread) read(ctx context.Context, s Step, do func()) error {
	if err := t.checkAlive(ctx); err != nil {
		return err
	}
	w := t.world
	fault := w.fault(t, s)
	switch fault {
	case simkit.CrashBefore:
		t.node.crash()
		return errDead
	case simkit.FreezeBefore:
		t.node.freeze()
		if !t.sleep(0) {
			return errDead
		}
		do()
	case simkit.FreezeAfter:
		do()
		t.node.freeze()
	case simkit.Refused:
		if !t.sleep(w.latency()) {
			return errDead
		}
		return errDown
	default:
		if w.explored {
			return t.readLater(s, do)
		}
		do()
	}
	if !t.sleep(w.latency()) {
		return errDead
	}
	return nil
}

// In an explored world, events may happen before the read, but none between the read and its
// response.
func (t *thread) readLater(s Step, do func()) error {
	t.observe(s)
	if !t.sleep(0) {
		return errDead
	}
	do()
	return nil
}

func (t *thread) write(ctx context.Context, s Step, do request) error {
	if err := t.checkAlive(ctx); err != nil {
		return err
	}
	w := t.world
	fault := w.fault(t, s)
	if fault == simkit.Refused {
		if !t.sleep(w.latency()) {
			return errGone
		}
		return errBusy
	}
	answered, err := t.send(fault, do)
	switch {
	case t.dead():
		return errGone
	case !answered, ctx.Err() != nil && w.Tape.Chance(500): // the caller cancels before the response
		return errTimeout
	}
	return err
}

func (t *thread) send(fault Fault, do request) (answered bool, err error) {
	w := t.world
	wait := w.latency()
	switch fault {
	case simkit.CrashBefore, simkit.CrashAfter:
		if fault == simkit.CrashAfter { // it may land after every caller has timed out
			w.after(simkit.Pick(w.Tape, w.latency(), w.Tape.UpTo(maxWriteDelay)), do)
		}
		t.node.crash()
		return false, nil
	case simkit.FreezeBefore:
		t.node.freeze()
		if !t.sleep(0) {
			return false, nil
		}
		err = do()
	case simkit.FreezeAfter:
		err = do()
		t.node.freeze()
	case simkit.Lost:
		_ = do()
		t.sleep(timeout)
		return false, nil
	case simkit.Unsent:
		t.sleep(timeout)
		return false, nil
	case simkit.Late:
		w.after(w.Tape.UpTo(maxWriteDelay), do)
		t.sleep(timeout)
		return false, nil
	case simkit.Twice:
		_ = do()
		err = do()
	default:
		err = t.deliver(wait, do)
		if w.explored {
			return !t.dead(), err
		}
		wait = w.latency()
	}
	return t.sleep(wait), err
}
