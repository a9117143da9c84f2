package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
)

// denials is an object store that distinguishes a missing permission from a denial of one
// object. If the store denies the same call for two objects of a bucket, and no such call
// succeeds in between, the permission is missing. Each further denial is then an [Outage]
// until a call succeeds. It is safe for concurrent use.
type denials struct {
	bucket.Store

	mu    sync.Mutex
	since map[permission]denial // denials since the last success
}

// permission is a call on a bucket.
type permission struct{ call, bucket string }

type denial struct {
	first event.Object
	all   bool // a second object was denied
}

// DetectDenials wraps a store to detect missing permissions. Workers that share the result
// share their knowledge. A worker wraps any other store itself.
func DetectDenials(s bucket.Store) bucket.Store { return newDenials(s) }

func newDenials(s bucket.Store) bucket.Store {
	if s == nil {
		return nil
	}
	if d, ok := s.(*denials); ok {
		return d
	}
	return &denials{Store: s, since: map[permission]denial{}}
}

// classify updates the denials after a call. It marks the error as an outage if the
// permission is missing.
func (d *denials) classify(call string, ref event.Object, err error) error {
	p := permission{call, ref.Bucket}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case err == nil, errors.Is(err, bucket.ErrNotFound), errors.Is(err, bucket.ErrPrecondition):
		delete(d.since, p)
		return err
	case !errors.Is(err, bucket.ErrDenied):
		return err
	}
	s, again := d.since[p]
	if !again {
		s.first = ref
	}
	s.all = s.all || s.first != ref
	d.since[p] = s
	if s.all {
		return Outage(err)
	}
	return err
}

// Head implements [bucket.Store].
func (d *denials) Head(ctx context.Context, ref event.Object) (bucket.Info, error) {
	info, err := d.Store.Head(ctx, ref)
	return info, d.classify("Head", ref, err)
}

// Get implements [bucket.Store].
func (d *denials) Get(ctx context.Context, ref event.Object) (bucket.Info, io.ReadCloser, error) {
	info, body, err := d.Store.Get(ctx, ref)
	return info, body, d.classify("Get", ref, err)
}

// Put implements [bucket.Store].
func (d *denials) Put(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
	etag, err := d.Store.Put(ctx, ref, o, c)
	return etag, d.classify("Put", ref, err)
}

// Copy implements [bucket.Copier] if the store does. It does not record a denied copy,
// because the caller then uploads the bytes.
func (d *denials) Copy(ctx context.Context, m bucket.CopyMethod, from bucket.Source, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
	copier, ok := d.Store.(bucket.Copier)
	if !ok {
		return "", fmt.Errorf("copying %s: %w: the store cannot copy", ref, bucket.ErrInvalid)
	}
	return copier.Copy(ctx, m, from, ref, o, c)
}

// Delete implements [bucket.Store].
func (d *denials) Delete(ctx context.Context, ref event.Object, c bucket.Condition) error {
	return d.classify("Delete", ref, d.Store.Delete(ctx, ref, c))
}
