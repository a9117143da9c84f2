package store

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

var (
	// ErrUnclear: the change may have landed, may land later, or may never land. Any other error is
	// treated like this one.
	ErrUnclear = errors.New("unclear answer from the store")
	// ErrThrottled: the change did not land, and may be sent again.
	ErrThrottled = errors.New("the store is overloaded")
	// ErrRejected: the change never lands, and a retry always fails.
	ErrRejected = errors.New("the store rejects this record")
	// ErrUnusable: the store cannot be opened or used, and a retry does not help. Changes in
	// progress may have landed.
	ErrUnusable = errors.New("database unusable")
)

// Check returns an [ErrRejected] if a name or the body is invalid or longer than t permits.
func (t *Traits) Check(c *Change) error {
	if c.Key.Space == "" || c.Key.Name == "" {
		return fmt.Errorf("%w: the space or the name is empty", ErrRejected)
	}
	if n := len(c.Key.Space) + len(c.Key.Name); n > t.Name {
		return fmt.Errorf("%w: the name has %d bytes, want at most %d", ErrRejected, n, t.Name)
	}
	if c.Next == nil {
		return nil
	}
	if c.Next.Key != c.Key || c.Next.Nonce.IsZero() || c.Next.Nonce == c.Expect {
		return fmt.Errorf("%w: the next record of %q must have the same key and a fresh nonce", ErrRejected, c.Key.Name)
	}
	if n := len(c.Next.Body); n > t.Body {
		return fmt.Errorf("%w: the body has %d bytes, want at most %d", ErrRejected, n, t.Body)
	}
	if strings.IndexByte(c.Next.Body, 0) >= 0 || !utf8.ValidString(c.Next.Body) {
		return fmt.Errorf("%w: the body has a NUL byte, or is not UTF-8", ErrRejected)
	}
	return nil
}

// CheckAll checks the number of changes of an Apply, and each change.
func (t *Traits) CheckAll(changes []Change) error {
	if n := len(changes); n > t.Apply {
		return fmt.Errorf("%w: %d changes in one call, want at most %d", ErrRejected, n, t.Apply)
	}
	for i := range changes {
		if err := t.Check(&changes[i]); err != nil {
			return err
		}
	}
	return nil
}
