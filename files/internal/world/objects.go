package world

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/pawlhq/pawl/files"
)

const listPage = 2

func (t *thread) list(yield func(files.Listed, error) bool) {
	after, more := "", true
	for more {
		var page []files.Listed
		err := t.request(func() error {
			page = t.w.page(after)
			return nil
		})
		if err != nil {
			yield(files.Listed{}, err)
			return
		}
		more = len(page) == listPage
		for _, o := range page {
			if !yield(o, nil) {
				return
			}
			after = o.Key
		}
	}
}

type objects thread

// Sign implements [files.Objects]. The URL is the key.
func (b *objects) Sign(_ context.Context, f *files.File, until time.Time) (files.SignedRequest, error) {
	if (*thread)(b).dead() {
		return files.SignedRequest{}, errDead
	}
	return files.SignedRequest{URL: f.Key, Until: until}, nil
}

func (b *objects) SignGet(context.Context, *files.File, time.Duration) (string, error) {
	return "", nil
}

func (b *objects) Stat(_ context.Context, key string) (seen files.ObjectInfo, err error) {
	w := b.w
	err = (*thread)(b).request(func() error {
		seen = w.head(key)
		return nil
	})
	return seen, err
}

func (b *objects) Remove(_ context.Context, key string) error {
	w := b.w
	return (*thread)(b).request(func() error {
		w.remove(key)
		return nil
	})
}

// Put implements [files.Objects]. It stops waiting at the file's deadline, but the upload may land
// later.
func (b *objects) Put(_ context.Context, f *files.File, _ io.ReadSeeker) error {
	t, w := (*thread)(b), b.w
	left := f.PutBy.Sub(epoch) - w.Now
	if t.dead() || left <= 0 {
		return errNoAnswer
	}
	long := w.latency()
	if w.Tape.Chance(300) {
		long = w.Tape.UpTo(w.times.Upload)
	}
	key, p := f.Key, f.Promise
	w.model(key).viaService = true
	if long > left {
		w.After(long, func() { w.storeObject(key, p) })
		t.sleep(left)
		return errNoAnswer
	}
	t.sleep(long)
	return t.request(func() error {
		if !w.storeObject(key, p) {
			return errors.New("412")
		}
		return nil
	})
}
