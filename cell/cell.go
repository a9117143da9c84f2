// Package cell provides a value that is replaced only if it is unchanged: an object
// ([github.com/pawlhq/pawl/bucket.Cell]) or a register of a ledger
// ([github.com/pawlhq/pawl/ledger.Cell]).
//
// [Write] sends a conditional write and resolves lost answers. Rows of a ledger and the index of
// files have their own protocol, because several of their records change at once.
package cell

import (
	"context"
	"errors"
)

// Cell is one value. It is safe for concurrent use, and does not retry.
type Cell interface {
	// Read returns the zero Value if there is no value. Its error matches ErrUnavailable or
	// ErrRefused.
	Read(ctx context.Context) (Value, error)
	// Write replaces the value if it still has this version; an empty version requires that there
	// is no value. The new version differs from those of all other bodies. The error matches
	// ErrPrecondition, ErrConflict, ErrRefused, or else ErrUnclear.
	Write(ctx context.Context, version string, body []byte) (next string, err error)
	// String names the cell, for people.
	String() string
}

// Value is the value of a cell.
type Value struct {
	Version string // empty: there is no value
	Body    []byte // owned by the caller
}

// Errors of a request. Package bucket has the same errors, under the same names.
var (
	// ErrPrecondition is returned if the condition does not hold. Nothing was written.
	ErrPrecondition = errors.New("precondition failed")
	// ErrConflict is returned if another write was in progress. Nothing was written. Retry.
	ErrConflict = errors.New("conflicting write")
	// ErrUnclear is returned if the write may have landed, may land later, or may never land.
	ErrUnclear = errors.New("outcome unclear")
	// ErrUnavailable is returned if a read failed for a transient reason.
	ErrUnavailable = errors.New("store unavailable")
	// ErrRefused is returned if the request had no effect, and a retry cannot succeed until a
	// person acts.
	ErrRefused = errors.New("refused permanently")
	// ErrUnsent is returned if the request never left this process.
	ErrUnsent = errors.New("not sent")
)

// Refusal returns a distinct error that matches ErrRefused.
func Refusal(text string) error { return &refusal{text} }

type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }

func (*refusal) Is(target error) bool { return target == ErrRefused }
