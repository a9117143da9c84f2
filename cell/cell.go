// Package cell is a value that is read, and replaced if it is unchanged, wherever
// it is kept: an object of a store ([github.com/pawlhq/pawl/bucket.Cell]) or a
// register of a ledger ([github.com/pawlhq/pawl/ledger.Cell]).
//
// [Write] finds out what became of a write whose answer was lost. All of Pawl that
// writes an object or a register on a condition sends it through that one protocol.
// Rows of a ledger and the index of files have their own, because several of their
// records change at once.
package cell

import (
	"context"
	"errors"
)

// Cell is one value. It is safe for concurrent use, and retries nothing.
type Cell interface {
	// Read returns the value, or the zero Value if there is none. Its error
	// matches ErrUnavailable for a passing reason, and ErrRefused for a permanent
	// one.
	Read(ctx context.Context) (Value, error)
	// Write replaces the value if it still carries version; the empty version
	// demands that there is none. It returns the new version, which differs from
	// that of every other body. Its error matches ErrPrecondition, ErrConflict,
	// ErrRefused, or after any other failure ErrUnclear.
	Write(ctx context.Context, version string, body []byte) (next string, err error)
	// String names the cell, for people.
	String() string
}

// Value is what a cell holds.
type Value struct {
	Version string // empty: there is no value
	Body    []byte // the caller's own copy
}

// What a request answered. Package bucket has the same errors, under the same
// names.
var (
	// ErrPrecondition: the condition does not hold; this request wrote nothing.
	ErrPrecondition = errors.New("precondition failed")
	// ErrConflict: another write was under way; this request wrote nothing. Retry.
	ErrConflict = errors.New("conflicting write")
	// ErrUnclear: the write may have landed, may land yet, or may not.
	ErrUnclear = errors.New("outcome unclear")
	// ErrUnavailable: a read failed for a passing reason. Retry.
	ErrUnavailable = errors.New("store unavailable")
	// ErrRefused: nothing was written or read, and trying again will not help
	// until a person acts.
	ErrRefused = errors.New("refused permanently")
	// ErrUnsent: the request never left this process.
	ErrUnsent = errors.New("not sent")
)

// Refusal returns an error of its own that matches ErrRefused.
func Refusal(text string) error { return &refusal{text} }

type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }

func (*refusal) Is(target error) bool { return target == ErrRefused }
