package event

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Object names one object of a store, or one version of it.
//
// Key is the true key, decoded exactly once where the dialect encodes it. It is
// bytes, not text: it may hold spaces, newlines, "..", or invalid UTF-8.
type Object struct {
	Bucket string
	Key    string
	// VersionID is the store's version of the object, empty on an unversioned
	// bucket. GCS gives every object one: its generation.
	VersionID string
}

// String prints the object as an s3:// URL, quoted when it has bytes that do
// not belong on a terminal. Two objects never print alike: a key that pretends
// to carry a version is quoted, with its question mark as \x3f.
func (o Object) String() string {
	const query = "?versionId="
	s := "s3://" + o.Bucket + "/" + o.Key
	if strings.Contains(s, query) {
		s = strconv.Quote(s)
		s = strings.ReplaceAll(s[:len(s)-1], query, `\x3fversionId=`)
		if o.VersionID != "" {
			s += query + strconv.Quote(o.VersionID)[1:]
		} else {
			s += `"`
		}
		return s
	}
	if o.VersionID != "" {
		s += query + o.VersionID
	}
	return Quote(s)
}

// Quote returns s as it is when every byte of it is printable, and as a Go
// string literal otherwise, so that a hostile key can neither forge a log line
// nor drive a terminal. A space, a quote or a backslash is quoted too: a
// printed name has one reading.
func Quote(s string) string {
	for _, r := range s {
		if r <= ' ' || r == '"' || r == '\\' || r == '\uFFFD' || !strconv.IsPrint(r) {
			return strconv.Quote(s)
		}
	}
	if s == "" {
		return `""`
	}
	return s
}

// Kind says what happened to an object.
type Kind uint8

// The kinds of change that are ordered. The zero Kind is none.
const (
	Created Kind = iota + 1 // the object was written or overwritten
	Removed                 // the object was deleted, or expired
)

// String returns "created", "removed" or "none".
func (k Kind) String() string {
	switch k {
	case Created:
		return "created"
	case Removed:
		return "removed"
	}
	return "none"
}

// MarshalText writes the kind as its String.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (k *Kind) UnmarshalText(b []byte) error {
	switch string(b) {
	case "created":
		*k = Created
	case "removed":
		*k = Removed
	case "none", "":
		*k = 0
	default:
		return fmt.Errorf("event: unknown kind %q (want created or removed)", b)
	}
	return nil
}

// Event is one change of one object, as a store announced it.
type Event struct {
	Object    Object
	Kind      Kind
	Sequencer Sequencer // zero when the dialect has none
	// Time is when the store says that the change happened. Clocks differ:
	// it serves people and windows of minutes, never order.
	Time time.Time
	// ETag is without quotes, Size in bytes; both are empty for removals and
	// for dialects that do not carry them. Size is also 0 if the store does not know it.
	ETag string
	Size int64
	// Name is the store's own name for the change, "ObjectCreated:Put" say,
	// without the "s3:" that some put before it.
	Name    string
	Dialect Dialect
}
