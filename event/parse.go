package event

import (
	"errors"
	"fmt"
)

// Limits on a payload. The largest real ones are SQS's 1 MiB messages.
const (
	MaxPayload = 1 << 20 // bytes
	MaxRecords = 10_000
)

// Batch is what one payload said.
type Batch struct {
	Dialect Dialect
	Events  []Event
	// Ignored counts records that say nothing about order: tagging, ACLs,
	// restores, replication, and removals of objects that were not there.
	Ignored int
	// Test is set for the message that a store sends when notifications are
	// set up. It has no events and is to be acknowledged.
	Test bool
}

// Why a payload was refused. Match them with errors.Is; the error itself, a
// [*ParseError], says where.
var (
	ErrMalformed      = errors.New("malformed notification")
	ErrUnknownDialect = errors.New("unknown notification dialect")
	ErrTooLarge       = errors.New("notification too large")
)

// ParseError says which part of a payload was refused, and why.
type ParseError struct {
	Kind    error   // ErrMalformed, ErrUnknownDialect or ErrTooLarge
	Dialect Dialect // as asked for or detected
	Record  int     // index of the record, -1 for the payload as a whole
	Err     error   // the cause, or nil
}

func (e *ParseError) Error() string {
	s := e.Kind.Error()
	if e.Dialect != Detect {
		s += " (" + string(e.Dialect) + ")"
	}
	if e.Record >= 0 {
		s += fmt.Sprintf(": record %d", e.Record)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap gives errors.Is both the kind and the cause.
func (e *ParseError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}
