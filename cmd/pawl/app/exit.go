package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/cmd/pawl/config"
	"github.com/pawlhq/pawl/ledger"
)

// The exit codes. They are part of the command's interface.
const (
	ExitDone   = 0
	ExitFailed = 1
	ExitUsage  = 2
	ExitFound  = 3
	ExitSignal = 128 // plus the signal's number
)

// ExitCodes documents the exit codes for the help of commands.
const ExitCodes = `  0  done
  1  failed
  2  wrong usage or configuration: nothing was done
`

// Failure is why a command does not exit with 0.
type Failure struct {
	Code int
	Err  error  // nil: everything was said already
	Hint string // what to do; may be empty
}

func (f *Failure) Error() string {
	if f.Err == nil {
		return fmt.Sprintf("exit code %d", f.Code)
	}
	return f.Err.Error()
}

func (f *Failure) Unwrap() error { return f.Err }

// Usage is a failure of the command line's author.
func Usage(format string, args ...any) error {
	return &Failure{Code: ExitUsage, Err: fmt.Errorf(format, args...)}
}

// Misconfigured is a failure of the configuration's author.
func Misconfigured(err error) error { return &Failure{Code: ExitUsage, Err: err} }

// Failed is a failure with something to do about it.
func Failed(err error, hint string) error { return &Failure{Code: ExitFailed, Err: err, Hint: hint} }

// WhileRunning is an error of work that had begun. A ledger that cannot be used
// any longer is then no mistake in the configuration.
func WhileRunning(err error) error {
	if errors.Is(err, ledger.ErrUnusable) {
		return Failed(err, "")
	}
	return err
}

// Found makes the command exit with 3. What was found is on standard output.
func Found() error { return &Failure{Code: ExitFound} }

// Classify finds an error's exit code. started is false where the command line
// was not understood.
func Classify(err error, started bool) *Failure {
	var f *Failure
	switch {
	case errors.As(err, &f):
		return f
	case !started:
		return &Failure{Code: ExitUsage, Err: err, Hint: `"pawl --help" shows what there is`}
	}
	f = &Failure{Code: ExitFailed, Err: err}
	var c *config.Errors
	switch {
	case errors.As(err, &c), errors.Is(err, pawl.ErrConfig), errors.Is(err, ledger.ErrUnusable),
		errors.Is(err, bucket.ErrNoBucket), errors.Is(err, bucket.ErrDenied):
		f.Code = ExitUsage
	}
	return f
}

// PrintFailure prints an error, once.
func (a *App) PrintFailure(f *Failure, args []string) {
	if f.Err == nil {
		return
	}
	if i := slices.Index(args, "--"); i >= 0 {
		args = args[:i] // what follows is another command's
	}
	if a.JSON || slices.Contains(args, "--json") {
		a.printFailureJSON(f)
		return
	}
	fmt.Fprintf(a.Err, "pawl: %s\n", strings.TrimSpace(f.Err.Error()))
	if f.Hint != "" {
		fmt.Fprintf(a.Err, "hint: %s\n", f.Hint)
	}
}

// failureJSON is an error with --json.
type failureJSON struct {
	Error    string          `json:"error"`
	Hint     string          `json:"hint,omitempty"`
	ExitCode int             `json:"exit_code"`
	File     string          `json:"file,omitempty"`    // a configuration's
	Details  []*config.Error `json:"details,omitempty"` // what is wrong with it
}

func (a *App) printFailureJSON(f *Failure) {
	out := failureJSON{Error: f.Err.Error(), Hint: f.Hint, ExitCode: f.Code}
	var c *config.Errors
	if errors.As(f.Err, &c) {
		out.File, out.Details = c.File, c.List
	}
	b, err := json.Marshal(out)
	if err != nil {
		b = []byte(`{"error":"the error cannot be printed as JSON"}`)
	}
	fmt.Fprintf(a.Err, "%s\n", b)
}
