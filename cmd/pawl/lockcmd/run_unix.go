//go:build unix

package lockcmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/supervise"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/lock"
)

func runLock(ctx context.Context, a *app.App, object event.Object, command []string, o *lockOptions) error {
	path, err := lookUpProgram(command[0])
	if err != nil {
		return err
	}
	signals, stop := receiveSignals()
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stopWaiting := signals.cancelAt(cancel)
	lease, err := acquire(ctx, a, cancel, object, o)
	stopWaiting()
	if err != nil {
		return err
	}
	r, err := runUnderLease(lease, path, command, o, signals)
	return releaseAndReport(a, object, lease, r, err)
}

const (
	tokenVariable    = "PAWL_LOCK_TOKEN"
	deadlineVariable = "PAWL_LOCK_DEADLINE"
)

const guardName = "lock-guard"

// maxGrace bounds the time from SIGTERM to SIGKILL.
const maxGrace = 10 * time.Second

// The lease's context ends an eighth of the TTL before another process can acquire the lock. Half
// of that time remains for the command to end.
func runUnderLease(lease *lock.Lease, path string, command []string, o *lockOptions, signals signalQueue) (supervise.Result, error) {
	cmd := &exec.Cmd{Path: path, Args: command, Env: environment(lease), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	c := supervise.Config{
		Guard: guardName, Deadline: lease.Deadline, Interval: o.config.TTL / 12, Signals: signals,
		Grace: min(o.config.TTL/16, maxGrace), KillAtOnce: o.onLost == onLostKill, OrphanGrace: time.Second,
	}
	if _, nested := os.LookupEnv(tokenVariable); nested {
		c.OrphanGrace = 0 // the outer lock may have been lost
	}
	r, err := supervise.Run(lease.Context(), cmd, c)
	if start, ok := errors.AsType[*supervise.StartError](err); ok {
		err = cannotRun(command[0], start.Err)
	}
	if r.Expired && !errors.Is(err, lock.ErrLost) {
		err = expiryCause(lease, r.LongestStall, o.config.TTL)
	}
	if !r.Started && (errors.Is(err, lock.ErrLost) || errors.Is(err, errWaitTimeout)) {
		err = fmt.Errorf("%w; %w", err, errNotStarted)
	}
	return r, err
}

func environment(lease *lock.Lease) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { // remove the variables of an outer lock
		name, _, _ := strings.Cut(v, "=")
		return name == tokenVariable || name == deadlineVariable
	})
	return append(env, tokenVariable+"="+strconv.FormatInt(lease.Token(), 10),
		deadlineVariable+"="+lease.Deadline().UTC().Format("2006-01-02T15:04:05.000Z"))
}

// lossDelay bounds how much later than the guard the lease may notice the loss.
const lossDelay = time.Second

// expiryCause returns why the guard ended the group. After a stall shorter than half the TTL, the
// process could still have renewed the lease.
func expiryCause(lease *lock.Lease, stall, ttl time.Duration) error {
	select {
	case <-lease.Context().Done():
		if why := context.Cause(lease.Context()); errors.Is(why, lock.ErrLost) {
			return why
		}
	case <-time.After(lossDelay):
	}
	if stall >= ttl/2 {
		return fmt.Errorf("%w: this process was paused for %v", lock.ErrLost, stall.Round(time.Millisecond))
	}
	return fmt.Errorf("%w: the guard of the command received no renewal before the lease expired", lock.ErrLost)
}

// A lost lock may still be ours if the store is available again.
const (
	releaseTimeout     = 10 * time.Second
	releaseLostTimeout = time.Second
)

func releaseAndReport(a *app.App, object event.Object, lease *lock.Lease, r supervise.Result, err error) error {
	if !r.Gone {
		fmt.Fprintf(a.Err, "pawl: %s: lock not released, because processes of the command could not be killed; the lease will expire\n", object)
	} else {
		within := releaseTimeout
		if errors.Is(err, lock.ErrLost) {
			within = releaseLostTimeout
		}
		ctx, stop := context.WithTimeout(context.Background(), within)
		defer stop()
		releasing := lease.Release(ctx)
		switch {
		case err != nil, releasing == nil: // nil also if the lease was lost
		case errors.Is(releasing, lock.ErrLost):
			err = releasing
		default:
			fmt.Fprintf(a.Err, "pawl: %v\n", releasing)
		}
	}
	switch {
	case errors.Is(err, lock.ErrLost) && !errors.Is(err, errNotStarted):
		return fmt.Errorf("%w; the command was ended if it was still running", err)
	case err != nil:
		return err
	case r.Status.Signaled():
		return &app.Failure{Code: exitBySignal(r.Status.Signal())}
	case r.Status.ExitStatus() != 0:
		return &app.Failure{Code: r.Status.ExitStatus()}
	}
	return nil
}

// GuardCommands returns the hidden command of [supervise.Guard].
func GuardCommands(a *app.App) []*cobra.Command {
	return []*cobra.Command{{
		Use:    guardName,
		Short:  "Guard process of pawl lock: ends the command when the lock is lost",
		Hidden: true,
		Args:   app.NoArgs,
		RunE:   func(*cobra.Command, []string) error { return supervise.Guard(a.In, a.Out) },
	}}
}
