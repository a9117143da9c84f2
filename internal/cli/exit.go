package cli

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
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	exitFound  = 3
	exitSignal = 128 // plus the signal's number
)

const exitCodes = `  0  done
  1  failed
  2  wrong usage or configuration: nothing was done
`

// failure is why a command does not exit with 0.
type failure struct {
	code int
	err  error  // nil: everything was said already
	hint string // what to do; may be empty
}

func (f *failure) Error() string {
	if f.err == nil {
		return fmt.Sprintf("exit code %d", f.code)
	}
	return f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

// usage is a failure of the command line's author.
func usage(format string, args ...any) error {
	return &failure{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// misconfigured is a failure of the configuration's author.
func misconfigured(err error) error { return &failure{code: exitUsage, err: err} }

// failed is a failure with something to do about it.
func failed(err error, hint string) error { return &failure{code: exitFailed, err: err, hint: hint} }

// whileRunning is an error of work that had begun. A ledger that cannot be used
// any longer is then no mistake in the configuration.
func whileRunning(err error) error {
	if errors.Is(err, ledger.ErrUnusable) {
		return failed(err, "")
	}
	return err
}

// found makes the command exit with 3. What was found is on standard output.
func found() error { return &failure{code: exitFound} }

// classify finds an error's exit code. started is false where the command line
// was not understood.
func classify(err error, started bool) *failure {
	var f *failure
	switch {
	case errors.As(err, &f):
		return f
	case !started:
		return &failure{code: exitUsage, err: err, hint: `"pawl --help" shows what there is`}
	}
	f = &failure{code: exitFailed, err: err}
	var c *config.Errors
	switch {
	case errors.As(err, &c), errors.Is(err, pawl.ErrConfig), errors.Is(err, ledger.ErrUnusable),
		errors.Is(err, bucket.ErrNoBucket), errors.Is(err, bucket.ErrDenied):
		f.code = exitUsage
	}
	return f
}

// printFailure prints an error, once.
func (a *app) printFailure(f *failure, args []string) {
	if f.err == nil {
		return
	}
	if i := slices.Index(args, "--"); i >= 0 {
		args = args[:i] // what follows is another command's
	}
	if a.json || slices.Contains(args, "--json") {
		a.printFailureJSON(f)
		return
	}
	fmt.Fprintf(a.Err, "pawl: %s\n", strings.TrimSpace(f.err.Error()))
	if f.hint != "" {
		fmt.Fprintf(a.Err, "hint: %s\n", f.hint)
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

func (a *app) printFailureJSON(f *failure) {
	out := failureJSON{Error: f.err.Error(), Hint: f.hint, ExitCode: f.code}
	var c *config.Errors
	if errors.As(f.err, &c) {
		out.File, out.Details = c.File, c.List
	}
	b, err := json.Marshal(out)
	if err != nil {
		b = []byte(`{"error":"the error cannot be printed as JSON"}`)
	}
	fmt.Fprintf(a.Err, "%s\n", b)
}
