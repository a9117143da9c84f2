// Package bucket defines the object store that Pawl needs. A store reads, writes, deletes and lists
// objects, and supports preconditions. Its errors state whether a write happened.
//
// Drivers contain no rules of their own. [Output] implements the fenced write for all drivers. A
// driver must pass the suite in bucket/buckettest.
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

// Unlistable reports whether err, which a listing yields with i, concerns only the object with the
// key of i, because the store cannot list it. After such an error, the listing continues.
func (i Info) Unlistable(err error) bool { return i.Key != "" && errors.Is(err, ErrUnlistable) }

// Headers are the other HTTP headers that a store keeps for an object.
type Headers struct {
	CacheControl       string
	ContentDisposition string
	ContentEncoding    string
	ContentLanguage    string
}

// Condition is the precondition of a write. The zero Condition always holds. A caller sets at most
// one field.
type Condition struct {
	IfMatch  string // ETag, without quotes, that the object must have
	IfAbsent bool   // the object must not exist
}

// Object is the input of Put.
type Object struct {
	// Body is the content, read from its current position. If it is an io.Seeker, the request
	// contains a signed digest, so that the store can reject a damaged or truncated body.
	Body        io.Reader
	Size        int64 // exact length of Body in bytes
	ContentType string
	Headers     Headers
	Metadata    map[string]string // names in lower case, values in printable ASCII
}

// Store is an object store. It is safe for concurrent use.
//
// Head, Get and List may retry internally. Put and Delete must not retry. After a write that
// landed, a retry would fail, because its precondition no longer holds. Every error matches exactly
// one of the sentinels below.
type Store interface {
	// Head returns the description of an object, or ErrNotFound.
	Head(ctx context.Context, ref event.Object) (Info, error)
	// Get returns the description and the content of an object, or ErrNotFound. The caller
	// closes the content.
	Get(ctx context.Context, ref event.Object) (Info, io.ReadCloser, error)
	// Put writes the whole object or nothing, and returns its new ETag. It returns ErrInvalid if
	// [Object.Check] fails, or if the length of the body differs from Size. If Put detects the
	// wrong length too late, it returns ErrUnclear. If a body that is not an io.Seeker is
	// truncated, some stores keep a part of it; [Output] detects such an object.
	Put(ctx context.Context, ref event.Object, o Object, c Condition) (etag string, err error)
	// Delete deletes an object if c holds. Some stores ignore c. Without a condition, deleting a
	// missing object is not an error. With IfMatch, deleting a missing object either succeeds or
	// returns ErrPrecondition.
	Delete(ctx context.Context, ref event.Object, c Condition) error
	// List yields the objects with a prefix in key order, after the key startAfter. It leaves
	// Metadata, ContentType and Headers empty. Every error except ErrUnlistable ends the listing.
	// With ErrUnlistable, Info contains only the key of the object that the store cannot list, and
	// the listing continues.
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
	// ErrCredentials is returned if the credentials of the caller are expired, unknown or missing.
	// It matches ErrDenied. All requests fail until the credentials are renewed.
	ErrCredentials = fmt.Errorf("%w: no valid credentials", ErrDenied)
	// ErrInvalid is returned if the store rejects the request itself, for example because of an
	// invalid key. A retry does not help.
	ErrInvalid = cell.Refusal("the store rejected the request")
	// ErrPrecondition is returned if the condition does not hold. Nothing was written.
	ErrPrecondition = cell.ErrPrecondition
	// ErrConflict is returned if another write was in progress. Nothing was written. The caller
	// should retry.
	ErrConflict = cell.ErrConflict
	// ErrUnclear is returned if the response is ambiguous, for example after a timeout, a broken
	// connection or a 5xx. The write may have landed, may land later, or may never land. The caller
	// must read the object to decide.
	ErrUnclear = cell.ErrUnclear
	// ErrUnlistable is returned if the store cannot list an object, and therefore cannot list any
	// page that contains it.
	ErrUnlistable = errors.New("the store cannot list this object: remove it")
	// ErrUnavailable is returned after a transient failure of a read. The caller should retry.
	ErrUnavailable = cell.ErrUnavailable
)
