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
	// ErrIgnored: the store accepts a write whose precondition does not hold, or
	// gives nothing to name in one. The error's text tells which.
	ErrIgnored = errors.New("the object store ignores a precondition")
	// ErrNoETag: a write on the condition of no ETag would replace whatever is
	// there. It matches ErrIgnored.
	ErrNoETag = fmt.Errorf("%w: the store or a proxy returns no ETag", ErrIgnored)
)

// Cell is an object as a [cell.Cell]. Its version is its ETag, which is of the
// bytes alone: whoever writes a cell puts something new into each body, a nonce.
type Cell struct {
	Store       Store
	Ref         event.Object
	ContentType string
	// Max is how large a body may be, in bytes. Of a larger one Read returns Max+1
	// bytes.
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
	_ = r.Close() // what it could say, reading has said
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
