package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/pawlhq/pawl/proof/rig"
)

// fleet has all worker processes, including those that have ended.
type fleet struct {
	binary, dir, token string
	command            []string // of each worker
	probe              *http.Client

	mu      sync.Mutex
	workers []*worker
}

type worker struct {
	*rig.Process
	number  int // from 1
	webhook string
	api     string // these two are empty until the worker is ready
	admin   string
}

func (w *worker) String() string { return fmt.Sprintf("worker %d (pid %d)", w.number, w.Pid) }

func newFleet(binary, dir, token string, command ...string) *fleet {
	return &fleet{
		binary: binary, dir: dir, token: token, command: command,
		probe: &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}},
	}
}

const (
	startTries   = 3 // another process may take the port before the worker listens
	startTimeout = 30 * time.Second
)

var errEndedEarly = errors.New("the worker exited during startup")

// start returns when the worker's webhook responds.
func (f *fleet) start(ctx context.Context) (w *worker, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("its webhook did not answer within %s", startTimeout))
	defer cancel()
	for range startTries {
		w, err = f.startOnce(ctx)
		if err == nil || !errors.Is(err, errEndedEarly) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	return w, nil
}

func (f *fleet) startOnce(ctx context.Context) (*worker, error) {
	addr, err := rig.FreeAddress(ctx)
	if err != nil {
		return nil, err
	}
	api, err := rig.FreeAddress(ctx)
	if err != nil {
		return nil, err
	}
	admin, err := rig.FreeAddress(ctx)
	if err != nil {
		return nil, err
	}
	w, err := f.launch("http://"+addr+hookPath, append(environment(addr, f.token), apiVar+"="+api, adminVar+"="+admin))
	if err != nil {
		return nil, err
	}
	if err := f.ready(ctx, w); err != nil {
		w.Kill()
		return nil, fmt.Errorf("%w; the end of its log, %s:\n%s", err, w.Log, w.LogTail())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	w.api, w.admin = api, admin
	return w, nil
}

func (f *fleet) launch(webhook string, env []string) (*worker, error) {
	w := &worker{number: f.size() + 1, webhook: webhook}
	cmd := exec.Command(f.binary, slices.Concat(f.command, []string{"-c", filepath.Join(f.dir, configFile), "--log-level", "debug"})...)
	cmd.Env = env
	rig.OwnProcessGroup(cmd)
	var err error
	if w.Process, err = rig.Start(cmd, filepath.Join(f.dir, fmt.Sprintf("worker-%d.log", w.number))); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.workers = append(f.workers, w)
	return w, nil
}

func (f *fleet) ready(ctx context.Context, w *worker) error {
	return rig.Until(ctx, 20*time.Millisecond, func() (bool, error) {
		if w.Ended() {
			return false, errEndedEarly
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodHead, w.webhook, nil)
		if err != nil {
			return false, err
		}
		res, err := f.probe.Do(req)
		if err != nil {
			return false, nil
		}
		return res.StatusCode == http.StatusOK, res.Body.Close()
	})
}

func (f *fleet) webhooks() []string {
	return f.addresses(func(w *worker) string { return w.webhook })
}

func (f *fleet) apis() []string { return f.addresses(func(w *worker) string { return w.api }) }

func (f *fleet) admins() []string { return f.addresses(func(w *worker) string { return w.admin }) }

func (f *fleet) addresses(of func(*worker) string) (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.workers {
		if address := of(w); address != "" && !w.Ended() {
			all = append(all, address)
		}
	}
	return all
}

// close kills the workers that do not end within the grace period.
func (f *fleet) close(grace time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.workers {
		w.Terminate()
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	for _, w := range f.workers {
		select {
		case <-w.Done():
		case <-ctx.Done():
			w.Kill()
		}
	}
}

func (f *fleet) size() int { return len(f.all()) }

func (f *fleet) all() []*worker {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.workers)
}
