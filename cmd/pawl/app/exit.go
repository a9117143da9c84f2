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

// Exit codes are part of the command line interface.
const (
	ExitDone   = 0
	ExitFailed = 1
	ExitUsage  = 2
	ExitFound  = 3
	ExitSignal = 128 // plus the signal's number
)

// ExitCodes is help for commands.
const ExitCodes = `  0  done
  1  failed
  2  invalid usage or configuration: nothing was done
`

// Failure is an error with an exit code.
type Failure struct {
	Code int
	Err  error  // nil if everything is printed
	Hint string // remedy, or empty
}

func (f *Failure) Error() string {
	if f.Err == nil {
		return fmt.Sprintf("exit code %d", f.Code)
	}
	return f.Err.Error()
}

func (f *Failure) Unwrap() error { return f.Err }

// Usage returns an error about the command line.
func Usage(format string, args ...any) error {
	return &Failure{Code: ExitUsage, Err: fmt.Errorf(format, args...)}
}

// Misconfigured returns an error about the configuration.
func Misconfigured(err error) error { return &Failure{Code: ExitUsage, Err: err} }

// Failed returns an error with a hint.
func Failed(err error, hint string) error { return &Failure{Code: ExitFailed, Err: err, Hint: hint} }

// WhileRunning returns err of work that had already started. If the ledger became unusable, it changes the
// exit code to ExitFailed.
func WhileRunning(err error) error {
	if errors.Is(err, ledger.ErrUnusable) {
		return Failed(err, "")
	}
	return err
}

// Found returns a failure with exit code 3, for printed findings.
func Found() error { return &Failure{Code: ExitFound} }

// Classify adds an exit code. parsed is false if the command line was invalid.
func Classify(err error, parsed bool) *Failure {
	var f *Failure
	switch {
	case errors.As(err, &f):
		return f
	case !parsed:
		return &Failure{Code: ExitUsage, Err: err, Hint: `"pawl --help" lists the commands`}
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

// PrintFailure prints to standard error, as JSON if --json is set.
func (a *App) PrintFailure(f *Failure, args []string) {
	if f.Err == nil {
		return
	}
	if i := slices.Index(args, "--"); i >= 0 {
		args = args[:i] // the rest belongs to the command that pawl runs
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

type failureJSON struct {
	Error    string          `json:"error"`
	Hint     string          `json:"hint,omitempty"`
	ExitCode int             `json:"exit_code"`
	File     string          `json:"file,omitempty"`
	Details  []*config.Error `json:"details,omitempty"`
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
