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
	// Read returns the zero Value if there is none, or an error that matches ErrUnavailable or
	// ErrRefused.
	Read(ctx context.Context) (Value, error)
	// Write replaces the value of this version, which is empty for no value. The new version
	// differs from those of all other bodies. The error matches ErrPrecondition, ErrConflict,
	// ErrRefused, or else ErrUnclear.
	Write(ctx context.Context, version string, body []byte) (next string, err error)
	// String names the cell.
	String() string
}

// Value is the value of a cell.
type Value struct {
	Version string // empty: there is no value
	Body    []byte // owned by the caller
}

// Package bucket has the same errors, under the same names.
var (
	// ErrPrecondition is returned if the condition does not hold. Nothing was written.
	ErrPrecondition = errors.New("precondition failed")
	// ErrConflict is returned if another write was in progress. Nothing was written. Retry.
	ErrConflict = errors.New("conflicting write")
	// ErrUnclear is returned if the write may or may not have landed, or may still land.
	ErrUnclear = errors.New("outcome unclear")
	// ErrUnavailable is returned if a read failed for a transient reason.
	ErrUnavailable = errors.New("store unavailable")
	// ErrRefused is returned if nothing happened, and a retry cannot succeed until a person acts.
	ErrRefused = errors.New("refused permanently")
	// ErrUnsent is returned if the request never left this process.
	ErrUnsent = errors.New("not sent")
)

// Refusal returns a distinct error that matches ErrRefused.
func Refusal(text string) error { return &refusal{text} }

type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }

func (*refusal) Is(target error) bool { return target == ErrRefused }
