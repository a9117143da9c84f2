// Package bucket is the object store as Pawl needs it: look, read, write, remove
// and list, with preconditions, and errors that say whether a write happened.
//
// Drivers are dumb: [Output] holds the fenced write, once, above them. A driver
// exists when it passes bucket/buckettest.
package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/pawlhq/pawl/cell"
	"github.com/pawlhq/pawl/event"
)

// Info is what a store says of an object.
type Info struct {
	Key         string
	VersionID   string // empty on an unversioned bucket, never "null"
	ETag        string // without quotes
	ModTime     time.Time
	Size        int64
	ContentType string
	Headers     Headers
	// Metadata is the user's, names in lower case without the x-amz-meta-
	// prefix.
	Metadata map[string]string
}

// Unlistable reports whether a listing that yields i and err names an object that the
// store cannot list, and continues behind it.
func (i Info) Unlistable(err error) bool { return i.Key != "" && errors.Is(err, ErrUnlistable) }

// Headers are what else a store keeps of an object, for those who read it by HTTP.
type Headers struct {
	CacheControl       string
	ContentDisposition string
	ContentEncoding    string
	ContentLanguage    string
}

// Condition guards a write. The zero Condition guards nothing; at most one
// field is set.
type Condition struct {
	IfMatch  string // ETag, without quotes, that the object must carry
	IfAbsent bool   // the object must not exist
}

// Object is what Put writes.
type Object struct {
	// Body is sent with a signed digest if it is an io.Seeker, which lets the
	// store refuse what arrives damaged or cut off. It is read from where it
	// stands.
	Body        io.Reader
	Size        int64 // exact length of Body in bytes
	ContentType string
	Headers     Headers
	Metadata    map[string]string // names in lower case, values in printable ASCII
}

// Store is an object store. It is safe for concurrent use.
//
// Head, Get and List may retry inside. Put and Delete must not: a retry of a
// write that had landed sees a conflict of its own making. Their errors match
// exactly one of the sentinels below.
type Store interface {
	// Head returns what the store says of an object, or ErrNotFound.
	Head(ctx context.Context, ref event.Object) (Info, error)
	// Get is Head with the content. The caller closes it.
	Get(ctx context.Context, ref event.Object) (Info, io.ReadCloser, error)
	// Put writes the whole object, or nothing, and returns its new ETag. What
	// [Object.Check] refuses is ErrInvalid. A body of another length than Size
	// is ErrInvalid, or ErrUnclear if that was found too late. Some stores keep
	// a part of a body that breaks off and cannot seek: [Output] notices.
	Put(ctx context.Context, ref event.Object, o Object, c Condition) (etag string, err error)
	// Delete removes the object. Where c does not hold it removes nothing,
	// on a store that honours the condition: not all do. Removing what is
	// not there succeeds without a condition; with IfMatch it succeeds or
	// fails with ErrPrecondition, as the store likes.
	Delete(ctx context.Context, ref event.Object, c Condition) error
	// List yields the objects below a prefix in key order, after the key
	// startAfter. Metadata, ContentType and Headers stay empty. An error ends it, unless
	// it is ErrUnlistable: then Info has the key of that object alone, and the listing
	// continues after it.
	List(ctx context.Context, bucket, prefix, startAfter string) iter.Seq2[Info, error]
}

// What an operation answered. A driver wraps them with the facts. Those that a
// write shares with every [cell.Cell] are the same errors there; ErrNoBucket,
// ErrDenied and ErrInvalid are cell.ErrRefused.
var (
	// ErrNotFound: no such object.
	ErrNotFound = errors.New("object not found")
	// ErrNoBucket: no such bucket. Permanent until a person acts.
	ErrNoBucket = cell.Refusal("bucket not found")
	// ErrDenied: no permission. Permanent until a person acts.
	ErrDenied = cell.Refusal("access denied")
	// ErrCredentials is the ErrDenied that concerns the caller and no object: its
	// credentials are expired, unknown or missing. Nothing is permitted before a
	// person, or whatever renews them, acts.
	ErrCredentials = fmt.Errorf("%w: no valid credentials", ErrDenied)
	// ErrInvalid: the store refuses the request itself, a key it cannot hold
	// say. Permanent.
	ErrInvalid = cell.Refusal("the store rejected the request")
	// ErrPrecondition: the condition does not hold; nothing was written.
	ErrPrecondition = cell.ErrPrecondition
	// ErrConflict: another write was under way; nothing was written. Retry.
	ErrConflict = cell.ErrConflict
	// ErrUnclear: the write may have landed, may land yet, or may not: a
	// time-out, a broken connection, a 5xx. Look before believing either.
	ErrUnclear = cell.ErrUnclear
	// ErrUnlistable: the store cannot list an object, nor any page that has it.
	ErrUnlistable = errors.New("the store cannot list this object: remove it")
	// ErrUnavailable: a read failed for a passing reason. Retry.
	ErrUnavailable = cell.ErrUnavailable
)
