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

// denials detects missing permissions. A permission is missing if the same call is denied for two
// objects of a bucket without a success in between. Each further denial is an [Outage] until a call
// succeeds.
type denials struct {
	bucket.Store

	mu    sync.Mutex
	since map[permission]denial
}

type permission struct{ call, bucket string }

type denial struct {
	first event.Object
	all   bool // a second object was denied
}

// DetectDenials wraps a store to detect missing permissions, for workers that share their
// knowledge.
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

func (d *denials) Head(ctx context.Context, ref event.Object) (bucket.Info, error) {
	info, err := d.Store.Head(ctx, ref)
	return info, d.classify("Head", ref, err)
}

func (d *denials) Get(ctx context.Context, ref event.Object) (bucket.Info, io.ReadCloser, error) {
	info, body, err := d.Store.Get(ctx, ref)
	return info, body, d.classify("Get", ref, err)
}

func (d *denials) Put(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
	etag, err := d.Store.Put(ctx, ref, o, c)
	return etag, d.classify("Put", ref, err)
}

// The caller uploads the bytes after a denied copy, so Copy does not record it.
func (d *denials) Copy(ctx context.Context, m bucket.CopyMethod, from bucket.Source, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
	copier, ok := d.Store.(bucket.Copier)
	if !ok {
		return "", fmt.Errorf("copying %s: %w: the store cannot copy", ref, bucket.ErrInvalid)
	}
	return copier.Copy(ctx, m, from, ref, o, c)
}

func (d *denials) Delete(ctx context.Context, ref event.Object, c bucket.Condition) error {
	return d.classify("Delete", ref, d.Store.Delete(ctx, ref, c))
}
