//go:build unix

package lockcmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/lock"
)

func runLock(ctx context.Context, a *app.App, object event.Object, command []string, o *lockOptions) error {
	path, err := program(command[0])
	if err != nil {
		return err
	}
	signals, stop := catch(forwarded)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stopWaiting := signals.cancelAt(cancel)
	lease, err := acquire(ctx, a, cancel, object, o)
	stopWaiting()
	if err != nil {
		return err
	}
	status, gone, err := runHolding(lease, path, command, o, signals)
	return conclude(a, object, lease, status, gone, err)
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
	children, stop := catch([]os.Signal{syscall.SIGCHLD})
	defer stop()
	if err := g.run(path, command, environment(lease)); err != nil {
		return 0, true, cannotRun(command[0], err)
	}
	started = true
	status, err = g.watch(lease, signals, children)
	return status, true, err
}

// What bounds the release of a lock whose command has ended, or was ended because
// the lock was lost: then it may still be ours, if the store is there again.
const (
	releaseTime     = 10 * time.Second
	releaseLostTime = time.Second
)

// conclude releases the lock, and says what became of the command.
func conclude(a *app.App, object event.Object, lease *lock.Lease, status syscall.WaitStatus, gone bool, err error) error {
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
		return &app.Failure{Code: exitBySignal(status.Signal())}
	case status.ExitStatus() != 0:
		return &app.Failure{Code: status.ExitStatus()}
	}
	return nil
}

// GuardCommands returns the hidden command that guards a process group.
func GuardCommands(a *app.App) []*cobra.Command {
	g := guard{say: func(s string) { fmt.Fprintln(a.Out, s) }}
	var onLost string
	cmd := &cobra.Command{
		Use:    guardName,
		Short:  "End a command when its lock is lost: started by pawl lock",
		Hidden: true,
		Args:   app.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			g.hurry = onLost == onLostKill
			_, g.within = os.LookupEnv(tokenVariable)
			g.group = os.Getpid()
			if syscall.Getpgrp() != g.group {
				return app.Usage("%s is started by pawl lock, and by nobody else", guardName)
			}
			// They are meant for the command. A pipe's other end may be gone.
			signal.Ignore(append([]os.Signal{
				syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGPIPE,
			}, forwarded...)...)
			g.watch(readOrders(a.In))
			return nil
		},
	}
	flags := cmd.Flags()
	flags.DurationVar(&g.grace, "grace", 0, "time from SIGTERM to SIGKILL")
	flags.IntVar(&g.backTo, "back-to", 0, "process group to leave for")
	flags.StringVar(&onLost, "on-lost", onLostTerminate, "terminate or kill")
	return []*cobra.Command{cmd}
}
