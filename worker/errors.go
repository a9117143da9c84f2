package worker

import (
	"errors"
	"syscall"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/engine"
)

// Causes of a task's cancellation; see context.Cause.
var (
	// ErrLeaseLost means that the lease has expired or is about to expire.
	ErrLeaseLost = errors.New("lease lost")
	// ErrShutdown means that the shutdown timeout has passed.
	ErrShutdown = errors.New("worker is shutting down")
)

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// Permanent marks an error that every attempt at the same content would return. The object stays
// dead until it changes or an operator redrives it.
func Permanent(err error) error { return &permanentError{err} }

// IsPermanent reports whether err is marked as permanent.
func IsPermanent(err error) bool {
	var p *permanentError
	return errors.As(err, &p)
}

type outageError struct{ err error }

func (e *outageError) Error() string { return e.err.Error() }
func (e *outageError) Unwrap() error { return e.err }

// Outage marks an error that does not depend on the object. Attempts are then not counted.
func Outage(err error) error { return &outageError{err} }

type sharedError struct {
	err    error
	shared engine.Shared
}

func (e *sharedError) Error() string { return e.err.Error() }
func (e *sharedError) Unwrap() error { return e.err }

// OutageIfShared marks an error that is an outage if this many objects fail with the same cause. A
// success in between resets the count. During the outage, one object at a time probes the receiver,
// and attempts do not count until Config.Outage has passed.
func OutageIfShared(err error, cause string, objects int) error {
	return &sharedError{err, engine.Shared{Cause: cause, Objects: objects}}
}

func sharedBy(err error) engine.Shared {
	if s, ok := errors.AsType[*sharedError](err); ok {
		return s.shared
	}
	return engine.Shared{}
}

func isOutage(err error) bool {
	var o *outageError
	return errors.As(err, &o) || errors.Is(err, bucket.ErrCredentials) || isShortage(err)
}

func isShortage(err error) bool {
	for _, short := range []error{
		syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM, syscall.ENOBUFS, syscall.ENOSPC, syscall.EDQUOT,
	} {
		if errors.Is(err, short) {
			return true
		}
	}
	return false
}

type retryError struct {
	err   error
	after time.Duration
}

func (e *retryError) Error() string { return e.err.Error() }
func (e *retryError) Unwrap() error { return e.err }

// RetryAfter marks an error that must not be retried before d has passed.
func RetryAfter(err error, d time.Duration) error { return &retryError{err, d} }

func retryAfter(err error) time.Duration {
	var r *retryError
	if errors.As(err, &r) {
		return r.after
	}
	return 0
}
