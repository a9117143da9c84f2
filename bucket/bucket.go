// Package bucket defines the object store that Pawl needs: read, write, delete and list
// objects, with preconditions, and errors that state whether a write happened.
//
// Drivers contain no rules of their own. [Output] implements the fenced write once for all of
// them. A driver must pass the suite in bucket/buckettest.
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

// Info describes an object.
type Info struct {
	Key         string
	VersionID   string // empty in an unversioned bucket, never "null"
	ETag        string // without quotes
	ModTime     time.Time
	Size        int64
	ContentType string
	Headers     Headers
	// Metadata is the user metadata. Names are in lower case, without the prefix x-amz-meta-.
	Metadata map[string]string
}

// Unlistable reports whether err, which a listing yields with i, only concerns one object that
// the store cannot list. The listing then continues.
func (i Info) Unlistable(err error) bool { return i.Key != "" && errors.Is(err, ErrUnlistable) }

// Headers are the other HTTP headers that a store keeps for an object.
type Headers struct {
	CacheControl       string
	ContentDisposition string
	ContentEncoding    string
	ContentLanguage    string
}

// Condition is the precondition of a write. The zero Condition always holds. At most one field
// is set.
type Condition struct {
	IfMatch  string // ETag, without quotes, that the object must have
	IfAbsent bool   // the object must not exist
}

// Object is the input of Put.
type Object struct {
	// Body is the content, read from its current position. If it is an io.Seeker, the request
	// contains a signed digest, and the store can reject a damaged or truncated body.
	Body        io.Reader
	Size        int64 // exact length of Body in bytes
	ContentType string
	Headers     Headers
	Metadata    map[string]string // names in lower case, values in printable ASCII
}

// Store is an object store. It is safe for concurrent use.
//
// Head, Get and List may retry internally. Put and Delete must not, because a retry after a
// write that landed fails its own precondition. Every error matches exactly one of the
// sentinels below.
type Store interface {
	// Head returns the description of an object, or ErrNotFound.
	Head(ctx context.Context, ref event.Object) (Info, error)
	// Get returns the description and the content of an object, or ErrNotFound. The caller
	// closes the content.
	Get(ctx context.Context, ref event.Object) (Info, io.ReadCloser, error)
	// Put writes the whole object or nothing, and returns its new ETag. It returns ErrInvalid
	// if [Object.Check] fails, or if the length of the body differs from Size. It returns
	// ErrUnclear if it detects the wrong length too late. Some stores keep a part of a
	// truncated body that is not an io.Seeker; [Output] detects that.
	Put(ctx context.Context, ref event.Object, o Object, c Condition) (etag string, err error)
	// Delete deletes an object if c holds. Some stores ignore c. Deleting a missing object is
	// not an error without a condition. With IfMatch it either succeeds or returns
	// ErrPrecondition.
	Delete(ctx context.Context, ref event.Object, c Condition) error
	// List yields the objects with a prefix in key order, after the key startAfter. It leaves
	// Metadata, ContentType and Headers empty. An error ends the listing, except ErrUnlistable:
	// then Info contains only the key of the object that the store cannot list, and the listing
	// continues.
	List(ctx context.Context, bucket, prefix, startAfter string) iter.Seq2[Info, error]
}

// The kinds of errors. A driver wraps them with details. ErrPrecondition, ErrConflict,
// ErrUnclear and ErrUnavailable are the same as in package cell. ErrNoBucket, ErrDenied and
// ErrInvalid match cell.ErrRefused.
var (
	// ErrNotFound is returned if the object does not exist.
	ErrNotFound = errors.New("object not found")
	// ErrNoBucket is returned if the bucket does not exist. A retry does not help.
	ErrNoBucket = cell.Refusal("bucket not found")
	// ErrDenied is returned if a permission is missing. A retry does not help.
	ErrDenied = cell.Refusal("access denied")
	// ErrCredentials is an ErrDenied that concerns the caller and not one object: its
	// credentials are expired, unknown or missing. All requests fail until the credentials are
	// renewed.
	ErrCredentials = fmt.Errorf("%w: no valid credentials", ErrDenied)
	// ErrInvalid is returned if the store rejects the request itself, for example because of an
	// invalid key. A retry does not help.
	ErrInvalid = cell.Refusal("the store rejected the request")
	// ErrPrecondition is returned if the condition does not hold. Nothing was written.
	ErrPrecondition = cell.ErrPrecondition
	// ErrConflict is returned if another write was in progress. Nothing was written. Retry.
	ErrConflict = cell.ErrConflict
	// ErrUnclear is the ambiguous answer: a timeout, a broken connection or a 5xx. The write
	// may have landed, may land later, or may never land. Read the object before you decide.
	ErrUnclear = cell.ErrUnclear
	// ErrUnlistable is returned if the store cannot list an object, and no page that contains
	// it.
	ErrUnlistable = errors.New("the store cannot list this object: remove it")
	// ErrUnavailable is returned after a transient failure of a read. Retry.
	ErrUnavailable = cell.ErrUnavailable
)
