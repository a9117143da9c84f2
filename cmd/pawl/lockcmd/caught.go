package lockcmd

import (
	"context"
	"os"
	"os/signal"
	"sync"
)

// caught are signals that this process gets for the command that it runs.
type caught chan os.Signal

// catch begins to catch signals. One that is ignored, as by nohup, stays so. The
// caller calls stop.
func catch(signals []os.Signal) (c caught, stop func()) {
	c = make(caught, 16)
	for _, s := range signals {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
	return c, func() { signal.Stop(c) }
}

// cancelAt cancels by the first signal that comes before stop.
func (c caught) cancelAt(cancel context.CancelCauseFunc) (stop func()) {
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case s := <-c:
			cancel(signalled{s})
		case <-done:
		}
	})
	return func() {
		close(done)
		watch.Wait()
	}
}

// signalled is why a command ended that was waiting when a signal came.
type signalled struct{ os.Signal }

func (s signalled) Error() string { return "ended by a signal: " + s.String() }
