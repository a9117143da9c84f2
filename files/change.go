package files

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/store"
)

// ErrUnclear is returned if a change may have landed, or may land later. Repeat it with the same
// idempotency key.
var ErrUnclear = errors.New("the index gave an ambiguous answer: send the request again with the same idempotency key")

// ErrConflict is returned if the row has changed since it was loaded.
var ErrConflict = errors.New("the row was changed by another request")

var errKeyTaken = errors.New("the idempotency key belongs to another file")

// Change replaces the row of a file.
type Change struct {
	From  *File // as loaded; nil: the row is new
	Next  File  // Apply sets its nonce
	Drop  bool  // delete the row and its idempotency key
	Limit Usage // upper limit of an increased usage
}

// Apply changes row, list entry, usage, and a new file's idempotency key atomically. If the key
// belongs to another file, it returns that file and an error.
func (x *Index) Apply(ctx context.Context, c Change) (File, error) {
	for expired := ""; ; {
		it, err := x.prepare(ctx, &c)
		if err != nil {
			return File{}, err
		}
		if it.addedUsage == (Usage{}) && it.key == 0 && c.From != nil {
			err = x.writeWithoutUsage(ctx, it)
		} else {
			err = x.send(ctx, c.Next.Entity, it)
		}
		switch {
		case err == nil:
			return c.Next, nil
		case errors.Is(err, errKeyTaken):
			return it.keyHolder, err
		case c.Next.Idempotency == "" || !errors.Is(err, ErrQuota) && !errors.Is(err, ErrOpenUploads):
			return File{}, err
		}
		// The usage was loaded before the key. A file that used the quota may have taken the key since.
		// If that file has expired, the quota may permit the new file again.
		f, missing := x.byIdempotency(ctx, c.Next.Entity, c.Next.Idempotency)
		switch {
		case missing == nil && f.State != Expired:
			return f, errKeyTaken
		case missing == nil && f.ID != expired:
			expired = f.ID
			continue
		case missing != nil && !errors.Is(missing, ErrNotFound):
			err = missing
		}
		return File{}, err
	}
}

type item struct {
	id         string
	nonce      store.Nonce
	creates    bool // the row is new
	drops      bool
	addedUsage Usage
	limit      Usage
	changes    []store.Change // file, list entry (optional), idempotency key (optional)
	key        int            // index of the key's change; 0: none
	keyHolder  File

	// Index.mu guards these fields, and while the item is queued all fields.
	wake         chan struct{} // buffered, with a capacity of one
	leader       bool
	done         bool
	solo         bool
	queuedAtLoad bool // queued when the usage was last loaded
	err          error
}

func (f *File) listed() bool { return f.Deletable() }

func (x *Index) prepare(ctx context.Context, c *Change) (*item, error) {
	it := &item{id: c.Next.ID, creates: c.From == nil, drops: c.Drop, limit: c.Limit, wake: make(chan struct{}, 1)}
	if _, err := rand.Read(it.nonce[:]); err != nil {
		return nil, err
	}
	c.Next.Nonce = it.nonce
	next := &c.Next
	if c.Drop {
		next = nil
	}
	it.addedUsage = usageDelta(c.From, next)
	if err := it.addFile(c.From, next); err != nil {
		return nil, err
	}
	switch {
	case c.Next.Idempotency == "":
	case it.creates:
		body, err := encode(keyBody{Format, it.id}, "the idempotency key of", it.id)
		if err != nil {
			return nil, err
		}
		it.addKey(idempotencyKey(c.Next.Entity, c.Next.Idempotency), store.Nonce{}, body)
	case c.Drop:
		return it, x.dropKey(ctx, it, idempotencyKey(c.Next.Entity, c.Next.Idempotency))
	}
	return it, nil
}

// The file and its list entry get the same nonce.
func (it *item) addFile(from, next *File) error {
	var expect store.Nonce
	if from != nil {
		expect = from.Nonce
	}
	file := store.Change{Key: fileKey(it.id), Expect: expect}
	if next != nil {
		body, err := encodeFile(next)
		if err != nil {
			return err
		}
		file.Next = &store.Record{Key: file.Key, Nonce: it.nonce, Due: next.DueAt, Body: body}
	}
	it.changes = append(it.changes, file)
	was, is := from != nil && from.listed(), next != nil && next.listed()
	switch {
	case !was && !is:
		return nil
	case !was:
		expect = store.Nonce{}
	}
	of := next
	if next == nil {
		of = from
	}
	entry := store.Change{Key: entryKey(of.Entity, it.id), Expect: expect}
	if is {
		body, err := encodeEntry(next)
		if err != nil {
			return err
		}
		entry.Next = &store.Record{Key: entry.Key, Nonce: it.nonce, Body: body}
	}
	it.changes = append(it.changes, entry)
	return nil
}

func (it *item) addKey(k store.Key, expect store.Nonce, body string) {
	it.key = len(it.changes)
	it.changes = append(it.changes, store.Change{Key: k, Expect: expect, Next: &store.Record{Key: k, Nonce: it.nonce, Body: body}})
}

// dropKey keeps the idempotency key if it has since created another file.
func (x *Index) dropKey(ctx context.Context, it *item, k store.Key) error {
	r, err := x.load(ctx, k)
	if err != nil || r == nil {
		return err
	}
	id, err := decodeKey(r)
	if err == nil && id == it.id {
		it.key = len(it.changes)
		it.changes = append(it.changes, store.Change{Key: k, Expect: r.Nonce})
	}
	return err
}

const (
	// callTimeout limits a call of the store, which the client cannot cancel.
	callTimeout   = 30 * time.Second
	retryInterval = 200 * time.Millisecond
)

func (x *Index) applyDetached(ctx context.Context, changes []store.Change) ([]store.Outcome, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	out, err := x.store.Apply(ctx, changes)
	for i := 0; i < len(out) && err == nil; i++ {
		err = out[i].Err
	}
	return out, err
}

// writeWithoutUsage sends the change again after an ambiguous answer. The nonce shows whether the
// first copy landed.
func (x *Index) writeWithoutUsage(ctx context.Context, it *item) error {
	for again := false; ; again = true {
		out, err := x.applyDetached(ctx, it.changes)
		switch {
		case err == nil:
			return x.outcome(ctx, it, out)
		case errors.Is(err, store.ErrRejected), errors.Is(err, store.ErrUnusable) && !again:
			return err
		}
		if !again {
			x.warn(ctx, "the index gave an ambiguous answer; sending the change again", "file", it.id, "error", err)
		}
		if stopped := x.sleep(ctx, retryInterval); stopped != nil {
			return wrapUnclear(it.id, fmt.Errorf("%w (last: %w)", stopped, err))
		}
	}
}

func (x *Index) outcome(ctx context.Context, it *item, out []store.Outcome) error {
	switch o := &out[0]; {
	case o.Applied:
		return nil
	case !o.Refused:
	case o.Current == nil && it.drops, o.Current != nil && (o.Current.Nonce == it.nonce || it.creates):
		return nil // an earlier attempt landed
	default:
		return ErrConflict
	}
	if len(out) < 2 || it.key == 1 || !out[1].Refused {
		return ErrConflict
	}
	switch f, err := x.Load(ctx, it.id); {
	case errors.Is(err, ErrNotFound), err == nil && f.Nonce != it.changes[0].Expect:
		return ErrConflict
	case err != nil:
		return err
	}
	return fmt.Errorf("%w: the list entry of file %s does not match the file", ErrUnreadable, it.id)
}
