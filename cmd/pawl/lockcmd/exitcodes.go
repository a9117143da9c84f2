package lockcmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/doctorcmd"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/lock"
)

// Exit codes follow sysexits.h and shells. Small codes belong to the command that was run.
const (
	exitUsage       = 64 // EX_USAGE
	exitUnavailable = 69 // EX_UNAVAILABLE
	exitUnsure      = 74 // EX_IOERR
	exitBusy        = 75 // EX_TEMPFAIL
	exitLost        = 76
	exitCannotRun   = 126
	exitNoCommand   = 127
)

var errNotStarted = errors.New("the command was not started")

type commandError struct {
	code int
	err  error
}

func (e *commandError) Error() string { return e.err.Error() }
func (e *commandError) Unwrap() error { return e.err }

func usageError(format string, args ...any) error {
	return &app.Failure{Code: exitUsage, Err: fmt.Errorf(format, args...)}
}

func flagUsageError(cmd *cobra.Command, err error) error {
	return &app.Failure{Code: exitUsage, Err: app.FlagError(cmd, err), Hint: fmt.Sprintf("%q lists the flags", cmd.CommandPath()+" --help")}
}

func sysexit(err error) error {
	if err == nil {
		return nil
	}
	f := *app.Classify(err, true)
	if given, ok := errors.AsType[*app.Failure](err); ok && (given.Err == nil || given.Code != app.ExitUsage) {
		return err // it has an exit code, for example that of the command that was run
	}
	if code := sysexitCode(err); code != 0 {
		f.Code = code
	} else if f.Code == app.ExitUsage {
		f.Code = exitUsage
	}
	return &f
}

func sysexitCode(err error) int {
	if errors.Is(err, lock.ErrUnsure) { // first, because pawl may have written the object
		return exitUnsure
	}
	if e, ok := errors.AsType[*commandError](err); ok {
		return e.code
	}
	if s, ok := errors.AsType[signalError](err); ok {
		return exitBySignal(s.Signal)
	}
	for _, c := range []struct {
		code  int
		kinds []error
	}{
		{exitBusy, []error{lock.ErrHeld, lock.ErrContended, errNotStarted}},
		{exitLost, []error{lock.ErrLost, lock.ErrFenced}},
		{exitUsage, []error{
			lock.ErrConfig, lock.ErrSlow, lock.ErrForeign, lock.ErrNewer, bucket.ErrIgnored, doctorcmd.ErrUnsafe,
			bucket.ErrDenied, bucket.ErrNoBucket, bucket.ErrInvalid,
		}},
		// If the wait ended before pawl saw a holder, the store did not respond.
		{exitUnavailable, []error{bucket.ErrUnavailable, bucket.ErrUnclear, bucket.ErrConflict, errWaitTimeout}},
	} {
		for _, kind := range c.kinds {
			if errors.Is(err, kind) {
				return c.code
			}
		}
	}
	return 0
}

func exitBySignal(s os.Signal) int {
	if n, ok := s.(syscall.Signal); ok {
		return app.ExitSignal + int(n)
	}
	return app.ExitFailed
}

func lookUpProgram(name string) (path string, err error) {
	path, err = exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	return "", cannotRun(name, err)
}

// cannotRun returns the exit code of a shell: 127 if the command does not exist, otherwise 126.
func cannotRun(name string, err error) error {
	code := exitCannotRun
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		code = exitNoCommand
	}
	return &commandError{code, fmt.Errorf("cannot run %s: %w", event.Quote(name), err)}
}

func splitArgs(cmd *cobra.Command, args []string) (object event.Object, command []string, err error) {
	dash := cmd.ArgsLenAtDash()
	switch {
	case len(args) == 0, dash == 0:
		return object, nil, usageError("%s needs an object: want %s", cmd.CommandPath(), cmd.UseLine())
	case dash < 0 && len(args) == 1, dash == len(args):
		return object, nil, usageError("%s needs a command to run: want %s", cmd.CommandPath(), cmd.UseLine())
	case dash != 1:
		return object, nil, usageError("%s takes one object and a command after --: want %s", cmd.CommandPath(), cmd.UseLine())
	}
	object, err = oneObject(args[0])
	return object, args[1:], err
}

func oneObject(arg string) (event.Object, error) {
	all, err := app.ObjectCandidates(arg)
	switch {
	case err != nil:
		return event.Object{}, sysexit(err)
	case all[0].VersionID != "":
		return event.Object{}, usageError("%s names one version of an object: want s3://bucket/key", event.Quote(arg))
	}
	return all[0], nil
}

func unavailable(err error) bool { return sysexitCode(err) == exitUnavailable }
