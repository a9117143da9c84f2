package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// fleet is the worker processes, those that ended among them.
type fleet struct {
	binary, dir, token string
	command            []string // what each of them does
	probe              *http.Client

	mu      sync.Mutex
	workers []*worker
}

func newFleet(binary, dir, token string, command ...string) *fleet {
	return &fleet{
		binary: binary, dir: dir, token: token, command: command,
		probe: &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}},
	}
}

const (
	startTries = 3 // another process may take the port first
	startTime  = 30 * time.Second
)

// start starts one more worker, and returns when it takes notifications.
func (f *fleet) start(ctx context.Context) (w *worker, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startTime, fmt.Errorf("it did not take notifications within %s", startTime))
	defer cancel()
	for range startTries {
		w, err = f.try(ctx)
		if err == nil || !errors.Is(err, errEnded) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	return w, nil
}

func (f *fleet) try(ctx context.Context) (*worker, error) {
	addr, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	api, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	w, err := f.launch("http://"+addr+hookPath, append(environment(addr, f.token), apiVar+"="+api))
	if err != nil {
		return nil, err
	}
	if err := f.ready(ctx, w); err != nil {
		w.kill()
		return nil, fmt.Errorf("%w; its log, %s, ends:\n%s", err, w.log, w.lastWords())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	w.api = api
	return w, nil
}

// launch starts one more worker, and does not wait for it.
func (f *fleet) launch(webhook string, env []string) (*worker, error) {
	w, err := launch(f.dir, f.size()+1, f.binary, f.command, env)
	if err != nil {
		return nil, err
	}
	w.webhook = webhook
	f.mu.Lock()
	defer f.mu.Unlock()
	f.workers = append(f.workers, w)
	return w, nil
}

// ready returns when the worker's webhook answers.
func (f *fleet) ready(ctx context.Context, w *worker) error {
	return until(ctx, 20*time.Millisecond, func() (bool, error) {
		if w.ended() {
			return false, errEnded
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodHead, w.webhook, nil)
		if err != nil {
			return false, err
		}
		res, err := f.probe.Do(req)
		if err != nil {
			return false, nil // not yet
		}
		return res.StatusCode == http.StatusOK, res.Body.Close()
	})
}

// webhooks are those of the workers that live.
func (f *fleet) webhooks() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for _, w := range f.workers {
		if !w.ended() {
			all = append(all, w.webhook)
		}
	}
	return all
}

// apis are the addresses where the workers that live and are ready serve clients, if
// that is what they do.
func (f *fleet) apis() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for _, w := range f.workers {
		if w.api != "" && !w.ended() {
			all = append(all, w.api)
		}
	}
	return all
}

// close asks all workers to end, and kills those that do not within the grace.
func (f *fleet) close(grace time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.workers {
		w.terminate()
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	for _, w := range f.workers {
		select {
		case <-w.done:
		case <-ctx.Done():
			w.kill()
		}
	}
}

// freeAddress returns a loopback address on which nobody listens just now.
func freeAddress(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// size is how many workers there were.
func (f *fleet) size() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.workers)
}

// all returns the workers, those that ended among them.
func (f *fleet) all() []*worker {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.workers)
}
