package lockcmd

import (
	"context"
	"os"
	"os/signal"
	"sync"

	"github.com/pawlhq/pawl/cmd/pawl/supervise"
)

type signalQueue chan os.Signal

// A signal that the process ignores, for example under nohup, stays ignored. Call stop.
func receiveSignals() (c signalQueue, stop func()) {
	c = make(signalQueue, 16)
	for _, s := range supervise.ForwardedSignals {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
	return c, func() { signal.Stop(c) }
}

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

type signalError struct{ os.Signal }

func (s signalError) Error() string { return "interrupted by signal: " + s.String() }
