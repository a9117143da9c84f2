package s3bucket

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
)

// unlistable names the object of a page of one, which the store refuses to list. No answer
// has its key, so it is found byte by byte: a listing of a prefix fails if its first object is
// this one. That takes about a thousand requests for a UUID.
func (p *page) unlistable(ctx context.Context) (bucket.Info, error) {
	q := page{store: p.store, bucket: p.bucket, prefix: p.prefix, after: p.after, maxKeys: 1}
	for {
		longer, err := q.extend(ctx)
		if err != nil {
			return bucket.Info{}, err
		}
		if !longer {
			break
		}
	}
	key := q.prefix
	q.after = key
	switch failed, err := q.failsToList(ctx); {
	case err != nil:
		return bucket.Info{}, err
	case failed || key == "":
		return bucket.Info{}, fmt.Errorf("%w: its key begins with %s", bucket.ErrUnlistable, event.Object{Bucket: p.bucket, Key: key})
	}
	return bucket.Info{Key: key}, fmt.Errorf("%w: %s", bucket.ErrUnlistable, event.Object{Bucket: p.bucket, Key: key})
}

// extend adds the next byte of the key to the prefix, and reports whether there is one that
// is printable ASCII.
func (p *page) extend(ctx context.Context) (bool, error) {
	prefix, first := p.prefix, byte(' ')
	if strings.HasPrefix(p.after, prefix) && len(p.after) > len(prefix) {
		first = max(first, p.after[len(prefix)]) // smaller ones come before after
	}
	for c := first; c <= '~'; c++ {
		p.prefix = prefix + string([]byte{c})
		if failed, err := p.failsToList(ctx); failed || err != nil {
			return true, err
		}
	}
	p.prefix = prefix
	return false, nil
}

// refused reports whether the store refuses to list the page because of an object. A prefix
// that it takes for a wrong name, such as "..", has none.
func (p *page) failsToList(ctx context.Context) (bool, error) {
	_, _, err := p.read(ctx)
	switch {
	case errors.Is(err, errUnlistablePage):
		return true, nil
	case errors.Is(err, bucket.ErrInvalid):
		return false, nil
	}
	return false, err
}
