// Package bucket defines the object store that Pawl needs. Its errors state whether a write
// happened. [Output] implements the fenced write for all drivers.
//
// # Read and write
//
// A [Store] writes on a [Condition], and returns [ErrPrecondition] if the condition does not hold:
//
//	report := event.Object{Bucket: "reports", Key: "march.txt"}
//	_, err := store.Put(ctx, report, bucket.Object{Body: text, Size: size}, bucket.Condition{IfAbsent: true})
//
// # Errors
//
// Every error matches one kind. [ErrUnclear] means that the write may have landed, or may land later, so
// the caller must read the object. After all other errors, nothing was written.
//
// # Replace an output only if it is unchanged
//
// An attempt pins its output before it reads its input, and publishes the result only if the output still
// has the pinned state. An attempt that is too late gets [ErrOutputChanged]:
//
//	out, err := bucket.Pin(ctx, store, report)
//	…
//	_, err = out.Publish(ctx, stamp, body, size, "text/plain")
//
// # Drivers
//
// Use bucket/s3bucket for S3 and compatible stores, and bucket/membucket for tests. A driver must pass the
// suite in bucket/buckettest.
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
	// Metadata is the user metadata: names in lower case, without the prefix x-amz-meta-.
	Metadata map[string]string
}

// Unlistable reports whether err, which a listing yields with i, concerns only the object i. The
// listing then continues.
func (i Info) Unlistable(err error) bool { return i.Key != "" && errors.Is(err, ErrUnlistable) }

// Headers are the other HTTP headers that a store keeps for an object.
type Headers struct {
	CacheControl       string
	ContentDisposition string
	ContentEncoding    string
	ContentLanguage    string
}

// Condition is the precondition of a write. The zero value always holds; at most one field is
// set.
type Condition struct {
	IfMatch  string // ETag that the object must have, without quotes
	IfAbsent bool   // the object must not exist
}

// Object is the input of Put.
type Object struct {
	// Body is read from its current position. If it is an io.Seeker, the request has a signed
	// digest, so that the store can reject a damaged or truncated body.
	Body        io.Reader
	Size        int64 // exact length of Body
	ContentType string
	Headers     Headers
	Metadata    map[string]string // names in lower case, values in printable ASCII
}

// Store is an object store. It is safe for concurrent use. Every error matches exactly one of the
// sentinels below.
//
// Head, Get and List may retry internally. Put and Delete must not, because a retry after a write
// that landed fails its own precondition.
type Store interface {
	Head(ctx context.Context, ref event.Object) (Info, error)
	// The caller closes the content.
	Get(ctx context.Context, ref event.Object) (Info, io.ReadCloser, error)
	// Put writes the whole object or nothing. It returns ErrInvalid if [Object.Check] fails or
	// the length of the body differs from Size, or ErrUnclear if it detects that too late. Some
	// stores keep a part of a truncated body that is not an io.Seeker; [Output] detects such an
	// object.
	Put(ctx context.Context, ref event.Object, o Object, c Condition) (etag string, err error)
	// Delete deletes an object if c holds. Some stores ignore c. Deleting a missing object is not
	// an error without a condition. With IfMatch it may also return ErrPrecondition.
	Delete(ctx context.Context, ref event.Object, c Condition) error
	// List yields the objects with a prefix in key order, after the key startAfter, without
	// Metadata, ContentType and Headers. Every error except ErrUnlistable ends the listing. With
	// ErrUnlistable, Info has only a key.
	List(ctx context.Context, bucket, prefix, startAfter string) iter.Seq2[Info, error]
}

// The kinds of errors, which a driver wraps. Those with names from package cell are the same.
// ErrNoBucket, ErrDenied and ErrInvalid match cell.ErrRefused.
var (
	ErrNotFound = errors.New("object not found")
	// ErrNoBucket is returned for a missing bucket. A retry does not help.
	ErrNoBucket = cell.Refusal("bucket not found")
	// ErrDenied is returned for a missing permission. A retry does not help.
	ErrDenied = cell.Refusal("access denied")
	// ErrCredentials is returned if the caller's credentials are expired, unknown or missing. It
	// matches ErrDenied. All requests fail until they are renewed.
	ErrCredentials = fmt.Errorf("%w: no valid credentials", ErrDenied)
	// ErrInvalid is returned if the store rejects the request itself, for example an invalid key.
	// A retry does not help.
	ErrInvalid = cell.Refusal("the store rejected the request")
	// ErrPrecondition is returned if the condition does not hold. Nothing was written.
	ErrPrecondition = cell.ErrPrecondition
	// ErrConflict is returned if another write was in progress. Nothing was written; retry.
	ErrConflict = cell.ErrConflict
	// ErrUnclear is returned for an ambiguous answer. The write may have landed, may land later,
	// or may never land. The caller must read the object to decide.
	ErrUnclear = cell.ErrUnclear
	// ErrUnlistable is returned if the store cannot list an object, or any page that contains it.
	ErrUnlistable = errors.New("the store cannot list this object: remove it")
	// ErrUnavailable is returned after a transient failure of a read; retry.
	ErrUnavailable = cell.ErrUnavailable
)
