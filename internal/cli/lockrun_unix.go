//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/lock"
)

// forwarded are the signals that the command gets.
var forwarded = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
}

func runLock(ctx context.Context, a *app, object event.Object, command []string, o *lockOptions) error {
	path, err := program(command[0])
	if err != nil {
		return err
	}
	signals, stop := catch(forwarded)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stopWaiting := signals.cancelAt(cancel)
	lease, err := a.acquire(ctx, cancel, object, o)
	stopWaiting()
	if err != nil {
		return err
	}
	status, gone, err := runHolding(lease, path, command, o, signals)
	return a.conclude(object, lease, status, gone, err)
}

// runHolding runs the command under guard. It returns how the command ended, and
// whether nothing of it is left, or why it was ended or not run.
func runHolding(lease *lock.Lease, path string, command []string, o *lockOptions, signals caught) (status syscall.WaitStatus, gone bool, err error) {
	started := false
	g, err := startGuard(lease, o)
	if err != nil {
		return 0, true, err
	}
	defer func() {
		ended, all := g.end()
		if gone = all; ended && !errors.Is(err, lock.ErrLost) {
			err = g.whyEnded(lease)
		}
		if !started && (errors.Is(err, lock.ErrLost) || errors.Is(err, errWaited)) {
			err = fmt.Errorf("%w; %w", err, errNotStarted)
		}
	}()
	if lease.Context().Err() != nil {
		return 0, true, context.Cause(lease.Context())
	}
	adoptOrphans()
	children, stop := catch([]os.Signal{syscall.SIGCHLD})
	defer stop()
	g.tty.give(g.id)
	defer g.tty.takeBack()
	if err := g.run(path, command, environment(lease, g.mark)); err != nil {
		return 0, true, cannotRun(command[0], err)
	}
	started = true
	status, err = g.watch(lease, signals, children)
	return status, true, err
}

// What a command knows of the lock that it runs under.
const (
	tokenVariable    = "PAWL_LOCK_TOKEN"
	deadlineVariable = "PAWL_LOCK_DEADLINE"
	idVariable       = "PAWL_LOCK_ID" // the marks of all locks that it runs under
)

// environment is that of the command.
func environment(lease *lock.Lease, mark string) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { // of a lock around this one
		name, _, _ := strings.Cut(v, "=")
		return name == tokenVariable || name == deadlineVariable || name == idVariable
	})
	if outer := os.Getenv(idVariable); outer != "" {
		mark = outer + "," + mark
	}
	return append(env, tokenVariable+"="+strconv.FormatInt(lease.Token(), 10),
		deadlineVariable+"="+lease.Deadline().UTC().Format("2006-01-02T15:04:05.000Z"), idVariable+"="+mark)
}

// What bounds the release of a lock whose command has ended, or was ended because
// the lock was lost: then it may still be ours, if the store is there again.
const (
	releaseTime     = 10 * time.Second
	releaseLostTime = time.Second
)

// conclude releases the lock, and says what became of the command.
func (a *app) conclude(object event.Object, lease *lock.Lease, status syscall.WaitStatus, gone bool, err error) error {
	if !gone {
		fmt.Fprintf(a.Err, "pawl: %s: not released, because what is left of the command could not be killed: its lease runs out\n", object)
	} else {
		within := releaseTime
		if errors.Is(err, lock.ErrLost) {
			within = releaseLostTime
		}
		ctx, stop := context.WithTimeout(context.Background(), within)
		defer stop()
		releasing := lease.Release(ctx)
		switch {
		case err != nil, releasing == nil: // also of a lease that was lost
		case errors.Is(releasing, lock.ErrLost):
			err = releasing
		default:
			fmt.Fprintf(a.Err, "pawl: %v\n", releasing)
		}
	}
	switch {
	case errors.Is(err, lock.ErrLost) && !errors.Is(err, errNotStarted):
		return fmt.Errorf("%w; the command was ended, if it had not ended by itself", err)
	case err != nil:
		return err
	case status.Signaled():
		return &failure{code: exitBySignal(status.Signal())}
	case status.ExitStatus() != 0:
		return &failure{code: status.ExitStatus()}
	}
	return nil
}
