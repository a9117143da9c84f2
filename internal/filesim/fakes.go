package filesim

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"

	"github.com/pawlhq/pawl/files"
)

// index is the index as a thread reaches it.
type index thread

func (x *index) request(do func() error) error { return (*thread)(x).request(do) }

// Apply implements [files.Index]. The rows are checked at every change.
func (x *index) Apply(_ context.Context, c files.Change) (o files.Outcome, err error) {
	w := x.w
	err = x.request(func() (err error) {
		o, err = w.apply(c)
		return err
	})
	return o, err
}

// Load implements [files.Index].
func (x *index) Load(ctx context.Context, id string) (f files.File, err error) {
	err = x.request(func() (err error) {
		f, err = x.w.index.Load(ctx, id)
		return err
	})
	return f, err
}

// ByIdempotency implements [files.Index].
func (x *index) ByIdempotency(ctx context.Context, entity, key string) (f files.File, err error) {
	err = x.request(func() (err error) {
		f, err = x.w.index.ByIdempotency(ctx, entity, key)
		return err
	})
	return f, err
}

// Due implements [files.Index].
func (x *index) Due(ctx context.Context, before time.Time, after *files.File, limit int) (due []files.File, err error) {
	err = x.request(func() (err error) {
		due, err = x.w.index.Due(ctx, before, after, limit)
		return err
	})
	return due, err
}

// Used implements [files.Index].
func (x *index) Used(ctx context.Context, entity string) (u files.Usage, err error) {
	err = x.request(func() (err error) {
		u, err = x.w.index.Used(ctx, entity)
		return err
	})
	return u, err
}

// Scan implements [files.Index]: it shows the rows of one moment.
func (x *index) Scan(ctx context.Context, after string) (rows iter.Seq2[files.File, error]) {
	err := x.request(func() error {
		var all []files.File
		for f, err := range x.w.index.Scan(ctx, after) {
			if err != nil {
				return err
			}
			all = append(all, f)
		}
		rows = func(yield func(files.File, error) bool) {
			for _, f := range all {
				if !yield(f, nil) {
					return
				}
			}
		}
		return nil
	})
	if err != nil {
		return func(yield func(files.File, error) bool) { yield(files.File{}, err) }
	}
	return rows
}

// listPage is how many objects a listing shows at a time.
const listPage = 2

// list lists the bucket, page by page.
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

// List, Held and Close are not asked for in a world.
func (x *index) List(context.Context, string, string, int) ([]files.File, error) { return nil, nil }
func (x *index) Held(context.Context, string, int) ([]files.File, error)         { return nil, nil }
func (x *index) Close() error                                                    { return nil }

// pause is how the service waits before it sends a change again.
func (t *thread) pause(context.Context) error {
	t.sleep(t.w.tape.UpTo(time.Second))
	if t.dead {
		return errDead
	}
	return nil
}

// objects is the bucket as a thread reaches it. An object is in w.objects.
type objects thread

// Sign implements [files.Objects]: the URL's life is its only secret here.
func (b *objects) Sign(_ context.Context, f *files.File, until time.Time) (files.SignedRequest, error) {
	if b.dead {
		return files.SignedRequest{}, errDead
	}
	return files.SignedRequest{URL: f.Key, Until: until}, nil
}

// SignGet implements [files.Objects].
func (b *objects) SignGet(context.Context, *files.File, time.Duration) (string, error) {
	return "", nil
}

// Look implements [files.Objects].
func (b *objects) Look(_ context.Context, key string) (seen files.Seen, err error) {
	w := b.w
	err = (*thread)(b).request(func() error {
		seen = w.head(key)
		return nil
	})
	return seen, err
}

// Remove implements [files.Objects].
func (b *objects) Remove(_ context.Context, key string) error {
	w := b.w
	return (*thread)(b).request(func() error {
		w.remove(key)
		return nil
	})
}

// Put implements [files.Objects]: the service uploads, as a user does, but gives up
// when the file's time is over. What is on its way by then may land later.
func (b *objects) Put(_ context.Context, f *files.File, _ io.ReadSeeker) error {
	t, w := (*thread)(b), b.w
	left := f.PutBy.Sub(epoch) - w.now
	if t.dead || left <= 0 {
		return errNoAnswer
	}
	long := w.way()
	if w.tape.Chance(300) {
		long = w.tape.UpTo(w.times.Upload)
	}
	key, p := f.Key, f.Promise
	w.truth(key).through = true
	if long > left {
		w.after(long, func() { w.land(key, p) })
		t.sleep(left)
		return errNoAnswer
	}
	t.sleep(long)
	return t.request(func() error {
		if !w.land(key, p) {
			return errors.New("412")
		}
		return nil
	})
}
