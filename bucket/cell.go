package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/pawlhq/pawl/cell"
	"github.com/pawlhq/pawl/event"
)

var (
	// ErrIgnored is returned if the store ignores or does not support a precondition.
	ErrIgnored = errors.New("the object store ignores a precondition")
	// ErrNoETag is returned if the store returns no ETag: a write with an empty ETag as its
	// condition would replace any object. It matches ErrIgnored.
	ErrNoETag = fmt.Errorf("%w: the store or a proxy returns no ETag", ErrIgnored)
)

// Cell implements [cell.Cell] with an object. The version is the ETag, which depends only on the
// content. Each write must therefore contain something new, such as a nonce.
type Cell struct {
	Store       Store
	Ref         event.Object
	ContentType string
	// Max is the maximum size of a body in bytes. Read returns Max+1 bytes of a larger object.
	Max int64
}

var _ cell.Cell = (*Cell)(nil)

// Read implements [cell.Cell].
func (c *Cell) Read(ctx context.Context) (cell.Value, error) {
	info, r, err := c.Store.Get(ctx, c.Ref)
	if errors.Is(err, ErrNotFound) {
		return cell.Value{}, nil
	}
	if err != nil {
		return cell.Value{}, err
	}
	body, err := io.ReadAll(io.LimitReader(r, c.Max+1))
	_ = r.Close()
	if err == nil && info.ETag == "" {
		err = ErrNoETag
	}
	if err != nil {
		return cell.Value{}, err
	}
	return cell.Value{Version: info.ETag, Body: body}, nil
}

// Write implements [cell.Cell].
func (c *Cell) Write(ctx context.Context, version string, body []byte) (next string, err error) {
	cond := Condition{IfMatch: version, IfAbsent: version == ""}
	next, err = c.Store.Put(ctx, c.Ref, Object{Body: bytes.NewReader(body), Size: int64(len(body)), ContentType: c.ContentType}, cond)
	if err == nil && next == "" {
		err = ErrNoETag
	}
	return next, err
}

func (c *Cell) String() string { return c.Ref.String() }
