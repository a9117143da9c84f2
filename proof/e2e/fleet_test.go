//go:build unix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/proof/rig"
	"github.com/pawlhq/pawl/proof/servertest"
)

// Each slot runs one process at a time.
type fleet struct {
	binary, dir, config string
	env                 []string
	command             []string           // default: run
	isZombie            func(pid int) bool // reports whether a process that was just frozen will be a zombie
	ledgerMayBeDown     bool               // a process that fails to start is started again

	oneFrozen sync.Mutex     // held while a process is frozen: another process must be running to take over
	wg        sync.WaitGroup // of goroutines that inject faults
	mu        sync.Mutex
	slots     []*slot
	injected  []injectedFault
	starts    int
}

type slot struct {
	*fleet
	binary  string
	log     string
	logged  int64  // size of the log when the process started
	address string // guarded by the fleet's mu; empty if no process runs
	api     string // address of "files serve"
	process *rig.Process
}

// A plannedFault kills or freezes a slot's process, or replaces it.
type plannedFault struct {
	replaceBy string        // program to run after a graceful shutdown; empty: the same
	anyTime   bool          // at any time, including its start and ledger transactions
	after     time.Duration // since the process started, listened or continued
	freeze    time.Duration // time from SIGSTOP to SIGCONT; 0 means SIGKILL
}

type injectedFault struct {
	plannedFault
	pid int
	at  time.Time
}

func (b injectedFault) String() string {
	if b.freeze == 0 {
		return fmt.Sprintf("%d killed at %s", b.pid, b.at.Format("15:04:05.000"))
	}
	return fmt.Sprintf("%d stopped at %s for %s", b.pid, b.at.Format("15:04:05.000"), b.freeze)
}

// A frozen process sleeps past its lease, but its late writes land before the verification.
func planFaults(rng *rand.Rand, kills, stops, places int) [][]plannedFault {
	between := func(from, to time.Duration) time.Duration { return from + time.Duration(rng.Int64N(int64(to-from))) }
	var all []plannedFault
	for i := range kills + stops {
		s := plannedFault{after: between(0, 600*time.Millisecond), anyTime: i%10 == 0}
		if i < stops {
			s.freeze = between(1800*time.Millisecond, 2800*time.Millisecond)
		}
		all = append(all, s)
	}
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	dealt := make([][]plannedFault, places)
	for i, s := range all {
		dealt[i%places] = append(dealt[i%places], s)
	}
	return dealt
}

func (f *fleet) start(t testing.TB, places int) {
	t.Helper()
	t.Cleanup(func() {
		f.wg.Wait() // the test's context has ended
		for _, p := range f.slots {
			p.killForGood()
			if t.Failed() {
				t.Logf("%s ends:\n%s", filepath.Base(p.log), p.process.LogTail())
			}
		}
	})
	for n := range places {
		p := &slot{fleet: f, binary: f.binary, log: filepath.Join(f.dir, fmt.Sprintf("worker-%d.log", n))}
		if err := p.start(); err != nil {
			t.Fatal(err)
		}
		f.mu.Lock()
		f.slots = append(f.slots, p)
		f.mu.Unlock()
	}
}

func (f *fleet) addresses() (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.slots {
		if p.address != "" {
			all = append(all, p.address)
		}
	}
	return all
}

func (f *fleet) apis() (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.slots {
		if p.api != "" {
			all = append(all, p.api)
		}
	}
	return all
}

func (f *fleet) injectAll(ctx context.Context, plan [][]plannedFault) error {
	errs := make([]error, len(plan))
	var wg sync.WaitGroup
	for i, faults := range plan {
		wg.Go(func() {
			for _, s := range faults {
				if errs[i] = f.slots[i].inject(ctx, s); errs[i] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (f *fleet) restartExited(ctx context.Context) error {
	errs := make([]error, len(f.slots))
	var wg sync.WaitGroup
	for i, p := range f.slots {
		wg.Go(func() {
			for errs[i] == nil && ctx.Err() == nil {
				if errs[i] = p.runFor(ctx, time.Hour); ctx.Err() != nil {
					errs[i] = nil
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (p *slot) inject(ctx context.Context, s plannedFault) error {
	if !s.anyTime {
		if err := p.waitUntilListening(ctx); err != nil {
			return err
		}
	}
	if err := p.runFor(ctx, s.after); err != nil {
		return err
	}
	if s.freeze == 0 && s.replaceBy == "" {
		p.recordInjected(s)
		return p.killAndRestart()
	}
	p.oneFrozen.Lock()
	defer p.oneFrozen.Unlock()
	if s.replaceBy != "" {
		p.binary = s.replaceBy
		return p.shutDownAndRestart()
	}
	if err := p.freeze(ctx, s.anyTime); err != nil {
		return err
	}
	p.recordInjected(s)
	if err := p.runFor(ctx, s.freeze); err != nil {
		return err
	}
	return p.process.Thaw()
}

// freeze stops the process when it is a zombie; if blind, at once.
func (p *slot) freeze(ctx context.Context, blind bool) error {
	const tries = 50
	for n := 1; ; n++ {
		if err := p.process.Freeze(); err != nil {
			return err
		}
		if blind || n == tries || p.isZombie(p.process.Pid) {
			return nil
		}
		if err := p.process.Thaw(); err != nil {
			return err
		}
		if err := p.runFor(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

func (p *slot) recordInjected(s plannedFault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.injected = append(p.injected, injectedFault{plannedFault: s, pid: p.process.Pid, at: time.Now()})
}

// The process must not exit, unless another program took its port: then it is restarted.
func (p *slot) runFor(ctx context.Context, d time.Duration) error {
	over := time.NewTimer(d)
	defer over.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-over.C:
			return nil
		case <-p.process.Done():
			if err := p.restartAfterExit(p.process.Err()); err != nil {
				return err
			}
		}
	}
}

func (p *slot) waitUntilListening(ctx context.Context) error {
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodHead, "http://"+p.address+"/events", nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			return resp.Body.Close()
		}
		if err := p.runFor(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

func (p *slot) restartAfterExit(err error) error {
	p.clearAddresses()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && p.ledgerMayBeDown && exit.ExitCode() == 2 {
		return p.start() // an exit during operation has another code
	}
	if said := p.process.LogTail(); !strings.Contains(said, "address already in use") {
		return fmt.Errorf("a worker exited unexpectedly: %v\n%s", err, said)
	}
	return p.start()
}

func (p *slot) killAndRestart() error {
	p.process.Kill()
	if exit, ok := errors.AsType[*exec.ExitError](p.process.Err()); !ok || exit.Exited() {
		return p.restartAfterExit(p.process.Err())
	}
	p.clearAddresses()
	return p.start()
}

func (p *slot) shutDownAndRestart() error {
	p.clearAddresses()
	if err := p.process.Signal(os.Interrupt); err != nil {
		return err
	}
	if err := p.process.Err(); err != nil {
		return p.restartAfterExit(err)
	}
	return p.start()
}

// start does not wait until the process listens, because a fault may come earlier.
func (p *slot) start() error {
	address, err := servertest.FreeAddress()
	if err != nil {
		return err
	}
	api, err := servertest.FreeAddress()
	if err != nil {
		return err
	}
	command := p.command
	if command == nil {
		command = []string{"run"}
	}
	cmd := exec.Command(p.binary, slices.Concat(command, []string{"-c", p.config})...)
	cmd.Env = append(append(os.Environ(), p.env...), "PAWL_LISTEN="+address, "PAWL_API="+api)
	servertest.DieWithParent(cmd)
	logged := p.logSize()
	process, err := rig.Start(cmd, p.log)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.starts++
	p.process, p.address, p.api, p.logged = process, address, api, logged
	return nil
}

func (p *slot) logSize() int64 {
	info, err := os.Stat(p.log)
	if err != nil {
		return 0
	}
	return info.Size()
}

func (p *slot) killForGood() {
	p.process.Kill()
	p.clearAddresses()
}

func (p *slot) clearAddresses() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.address, p.api = "", ""
}

func (f *fleet) stop(t testing.TB) {
	t.Helper()
	for _, p := range f.slots {
		eventually(t, 2*time.Minute, func(context.Context) ([]string, error) {
			if p.logSize() == p.logged && !p.process.Ended() { // it may not handle signals yet
				return []string{"the process has logged nothing"}, nil
			}
			return nil, nil
		})
		if err := p.process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
	}
	for _, p := range f.slots {
		err := p.process.Err()
		if p.clearAddresses(); err != nil {
			t.Errorf("graceful shutdown: %v\n%s", err, p.process.LogTail())
		}
	}
}

func (f *fleet) count(t *testing.T, text string) (n int) {
	t.Helper()
	for _, p := range f.slots {
		b, err := os.ReadFile(p.log)
		if err != nil {
			t.Fatal(err)
		}
		n += strings.Count(string(b), text)
	}
	return n
}

var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "pawl-e2e-")
	if err != nil {
		return "", err
	}
	removeBuilt = func() { _ = os.RemoveAll(dir) }
	path := filepath.Join(dir, "pawl")
	out, err := exec.Command("go", "build", "-o", path, "github.com/pawlhq/pawl/cmd/pawl").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// TestMain calls removeBuilt after all tests.
var removeBuilt = func() {}

func build(t testing.TB) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
