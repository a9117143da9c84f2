package worker

import (
	"errors"
	"time"
)

// Causes of a task's cancellation, by context.Cause.
var (
	// ErrLeaseLost: the lease is gone or about to be. What the task does from
	// here on may be refused.
	ErrLeaseLost = errors.New("lease lost")
	// ErrShutdown: the worker is going down and its grace is over.
	ErrShutdown = errors.New("worker is shutting down")
)

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// Permanent marks an error that another attempt at the same content would only
// repeat. The object is dead at once, until it changes or is redriven.
func Permanent(err error) error { return &permanentError{err} }

// IsPermanent reports whether err is marked so.
func IsPermanent(err error) bool {
	var p *permanentError
	return errors.As(err, &p)
}

type retryError struct {
	err   error
	after time.Duration
}

func (e *retryError) Error() string { return e.err.Error() }
func (e *retryError) Unwrap() error { return e.err }

// RetryAfter marks an error that is not worth another attempt before d has
// passed.
func RetryAfter(err error, d time.Duration) error { return &retryError{err, d} }

// retryAfter returns what RetryAfter said, or zero.
func retryAfter(err error) time.Duration {
	var r *retryError
	if errors.As(err, &r) {
		return r.after
	}
	return 0
}
