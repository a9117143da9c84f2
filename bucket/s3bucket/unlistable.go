package s3bucket

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
)

// unlistable finds the key of an unlistable object on a page of one object. No response contains
// the key, but a listing of one object fails if the prefix matches it. unlistable therefore tries
// byte after byte. A key with a UUID takes about a thousand requests.
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

// extend appends the next byte of the key to the prefix. It returns false if no printable ASCII
// character matches.
func (p *page) extend(ctx context.Context) (bool, error) {
	prefix, first := p.prefix, byte(' ')
	if strings.HasPrefix(p.after, prefix) && len(p.after) > len(prefix) {
		first = max(first, p.after[len(prefix)]) // smaller characters sort before p.after
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

// failsToList treats an invalid prefix, such as "..", as empty.
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
