package lockcmd

import (
	"context"
	"os"
	"os/signal"
	"sync"

	"github.com/pawlhq/pawl/cmd/pawl/supervise"
)

// signalQueue holds signals that this process receives for its command.
type signalQueue chan os.Signal

// receiveSignals starts to receive signals. A signal that the process ignores, for example
// under nohup, stays ignored. The caller must call stop.
func receiveSignals() (c signalQueue, stop func()) {
	c = make(signalQueue, 16)
	for _, s := range supervise.ForwardedSignals {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
	return c, func() { signal.Stop(c) }
}

// cancelAt calls cancel when a signal arrives before stop.
func (c signalQueue) cancelAt(cancel context.CancelCauseFunc) (stop func()) {
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case s := <-c:
			cancel(signalError{s})
		case <-done:
		}
	})
	return func() {
		close(done)
		watch.Wait()
	}
}

// signalError is the cause of a wait that a signal ended.
type signalError struct{ os.Signal }

func (s signalError) Error() string { return "interrupted by signal: " + s.String() }
