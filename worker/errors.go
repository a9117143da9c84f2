package worker

import (
	"errors"
	"syscall"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/engine"
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

type outageError struct{ err error }

func (e *outageError) Error() string { return e.err.Error() }
func (e *outageError) Unwrap() error { return e.err }

// Outage marks an error that says nothing of the object: this machine, or a service
// that all objects need, is not able to work. The object is tried again with back-off
// until it does, and however long that takes, the attempts are not counted.
func Outage(err error) error { return &outageError{err} }

type sharedError struct {
	err    error
	shared engine.Shared
}

func (e *sharedError) Error() string { return e.err.Error() }
func (e *sharedError) Unwrap() error { return e.err }

// OutageIfShared marks an error that is an outage of the receiver if that many
// objects of the pipeline meet the same cause without a success between. The first
// of them use up an attempt. Then the pipeline backs off, one object at a time
// probes the receiver, and attempts are not counted until Config.Outage has passed.
func OutageIfShared(err error, cause string, objects int) error {
	return &sharedError{err, engine.Shared{Cause: cause, Objects: objects}}
}

// sharedBy returns what OutageIfShared said, or zero.
func sharedBy(err error) engine.Shared {
	if s, ok := errors.AsType[*sharedError](err); ok {
		return s.shared
	}
	return engine.Shared{}
}

// isOutage reports whether err is marked so, or names a cause that lies with this
// machine or with the credentials. Such a cause needs no mark.
func isOutage(err error) bool {
	var o *outageError
	return errors.As(err, &o) || errors.Is(err, bucket.ErrCredentials) || isShortage(err)
}

// isShortage reports whether this machine is short of descriptors, processes, memory
// or disk.
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
