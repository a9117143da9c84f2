package event

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Object identifies an object of a store, or one version of it.
//
// Key is decoded. It may contain any bytes: spaces, newlines, "..", or invalid UTF-8.
type Object struct {
	Bucket string
	Key    string
	// VersionID is empty on an unversioned bucket. For GCS it is the generation.
	VersionID string
}

// String returns an s3:// URL, quoted if it is not safe on a terminal. Different objects have different
// strings.
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

// Quote returns s unchanged if every character is printable, and as a Go string literal otherwise. A
// hostile key then cannot forge a log line or control a terminal.
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

// Kind is the kind of a change.
type Kind uint8

// The zero Kind is none.
const (
	Created Kind = iota + 1 // written or overwritten
	Removed                 // deleted or expired
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

// MarshalText returns [Kind.String].
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText parses the result of MarshalText.
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

// Event is one change of one object, as its store reported it.
type Event struct {
	Object    Object
	Kind      Kind
	Sequencer Sequencer // zero if the dialect has none
	// Time is by the store's clock. Clocks differ, so it is for display and for windows of minutes, never
	// for order.
	Time time.Time
	// ETag is without quotes, Size in bytes. Both are zero for removals, and if the store does not know
	// them.
	ETag string
	Size int64
	// Name is the store's name for the change, without "s3:", for example "ObjectCreated:Put".
	Name    string
	Dialect Dialect
}
