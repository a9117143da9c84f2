package bucket

import (
	"context"

	"github.com/pawlhq/pawl/event"
)

// Copier is implemented by a [Store] that can copy an object without sending its content
// through the caller.
type Copier interface {
	// Copy is Put with the content of the source. o has no Body, and its Size is the size of the
	// source. If the source is missing or has another ETag, Copy writes nothing and returns
	// ErrPrecondition. It returns the same error if c does not hold. ErrUnavailable means that Copy
	// failed before it sent the request that writes the object.
	//
	// Some stores ignore conditions of a copy. Package doctor finds the methods that honour
	// conditions.
	Copy(ctx context.Context, m CopyMethod, from Source, ref event.Object, o Object, c Condition) (etag string, err error)
}

// Source is the source of a copy.
type Source struct {
	Ref  event.Object
	ETag string // without quotes
}

// CopyMethod is a set of methods to copy an object. The zero CopyMethod is the empty set.
type CopyMethod uint8

// The copy methods.
const (
	// CopyWhole copies an object of at most 5 GiB with one request.
	CopyWhole CopyMethod = 1 << iota
	// CopyParts copies the parts of a multipart upload. The last request writes the object, and has
	// the condition.
	CopyParts
)

// maxCopyWhole is the maximum size in bytes that S3 copies with CopyWhole.
const maxCopyWhole = 5 << 30

// minCopyParts is the size in bytes above which CopyParts is worth its additional requests.
var minCopyParts int64 = 16 << 20

// choose returns the method in m for an object of this size, or 0.
func (m CopyMethod) choose(size int64) CopyMethod {
	switch {
	case m&CopyWhole != 0 && size <= maxCopyWhole:
		return CopyWhole
	case m&CopyParts != 0 && size >= minCopyParts:
		return CopyParts
	}
	return 0
}
