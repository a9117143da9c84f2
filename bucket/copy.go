package bucket

import (
	"context"

	"github.com/pawlhq/pawl/event"
)

// Copier is a further ability of a [Store]: it copies an object without sending the
// bytes through the caller.
type Copier interface {
	// Copy is Put with the bytes of the source; o has no Body, and its Size is the
	// source's. If the source is gone or has another ETag, Copy writes nothing and
	// returns ErrPrecondition, as if c did not hold. ErrUnavailable means that Copy
	// failed before it sent the request that writes the object.
	//
	// Not every store honours conditions on a copy. Package doctor finds the methods
	// of a store that do.
	Copy(ctx context.Context, m CopyMethod, from Source, ref event.Object, o Object, c Condition) (etag string, err error)
}

// Source is the object that a [Copier] copies.
type Source struct {
	Ref  event.Object
	ETag string // without quotes
}

// CopyMethod is a way to copy an object, or a set of them. The zero CopyMethod is the
// empty set.
type CopyMethod uint8

// The methods.
const (
	// CopyWhole copies an object of at most 5 GiB with one request.
	CopyWhole CopyMethod = 1 << iota
	// CopyParts copies the parts of a multipart upload. Its last request writes the
	// object, on the condition.
	CopyParts
)

// maxCopyWhole is S3's limit for one request, in bytes.
const maxCopyWhole = 5 << 30

// minCopyParts is the size in bytes from which on an upload in parts is worth its
// additional requests.
var minCopyParts int64 = 16 << 20

// choose returns the method of the set m for an object of this size, or 0.
func (m CopyMethod) choose(size int64) CopyMethod {
	switch {
	case m&CopyWhole != 0 && size <= maxCopyWhole:
		return CopyWhole
	case m&CopyParts != 0 && size >= minCopyParts:
		return CopyParts
	}
	return 0
}
