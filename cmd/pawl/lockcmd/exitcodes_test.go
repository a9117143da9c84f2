package lockcmd

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/lock"
)

func TestSysexit(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
	}{
		{&app.Failure{Code: app.ExitUsage}, app.ExitUsage},
		{app.Usage("wrong"), 64},
		{app.Misconfigured(errors.New("wrong")), 64},
		{app.Failed(lock.ErrConfig, ""), 1},
		{errors.New("something else"), 1},
		{bucket.ErrNotFound, 1},
		{bucket.ErrDenied, 64},
		{bucket.ErrUnavailable, 69},
		{bucket.ErrUnclear, 69},
		{bucket.ErrConflict, 69},
		{fmt.Errorf("%w: %w", lock.ErrUnsure, bucket.ErrUnavailable), 74},
		{fmt.Errorf("%w: %w", lock.ErrUnsure, signalError{os.Interrupt}), 74},
		{fmt.Errorf("%w: %w", lock.ErrUnsure, &commandError{2, errors.New("exit status 2")}), 74},
		{fmt.Errorf("%w: %w", &lock.HeldError{}, errWaitTimeout), 75},
		{fmt.Errorf("%w; %w", lock.ErrLost, errNotStarted), 75},
		{errNoAnswer, 69},
		{fmt.Errorf("%w: %w", bucket.ErrUnavailable, errWaitTimeout), 69},
		{errWaitTimeout, 69}, // no holder was seen
		{fmt.Errorf("%w; %w", errWaitTimeout, errNotStarted), 75},
		{lock.ErrContended, 75},
		{lock.ErrLost, 76},
		{lock.ErrFenced, 76},
		{fmt.Errorf("%w: %w", &lock.HeldError{}, signalError{os.Interrupt}), 130},
		{&commandError{2, errors.New("exit status 2")}, 2},
	} {
		if got := app.Classify(sysexit(c.err), true).Code; got != c.code {
			t.Errorf("%v: exit code %d, want %d", c.err, got, c.code)
		}
	}
	if sysexit(nil) != nil {
		t.Error("nothing is an error")
	}
}
