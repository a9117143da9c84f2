package files

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/store"
)

// ErrUnclear is returned for a change that may have been made, may yet be, or will never
// be. A repeated request with the same idempotency key finds out.
var ErrUnclear = errors.New("the index gave an ambiguous answer: send the request again with the same idempotency key")

// ErrConflict is returned for a change of a row that has changed since it was loaded.
var ErrConflict = errors.New("the row was changed by another request")

// errKeyTaken: the idempotency key belongs to another file that is not Expired.
var errKeyTaken = errors.New("the idempotency key belongs to another file")

// Change replaces the row of a file.
type Change struct {
	From  *File // the row as it was loaded; nil: there must be none
	Next  File  // Apply gives it a nonce
	Drop  bool  // delete the row instead, and its idempotency key
	Limit Usage // refuses an increase above it
}

// Apply makes a change: the row, the entry, the usage, and the idempotency key of a file
// that begins change together. It returns the row as it is then. If the idempotency key
// has begun another file, it returns that one and an error.
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
		// The usage was loaded before the key: if the file of this key used up the quota,
		// the key is there. If that file has expired since, there may be room again.
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

// item is a change as records.
type item struct {
	id         string
	nonce      store.Nonce
	creates    bool // the row is new
	drops      bool
	addedUsage Usage
	limit      Usage
	changes    []store.Change // of the file, of its entry if it has or had one, and of its key
	key        int            // the place of the key's change; 0: none
	keyHolder  File           // of the key

	// Guarded by Index.mu, like the rest of the item while it is queued.
	wake         chan struct{} // has room for one
	leader       bool          // its caller is to send batches
	done         bool
	solo         bool // send it in a batch of its own
	queuedAtLoad bool // it was queued when the usage was loaded last
	err          error
}

// listed reports that the file has an entry in the list of its entity.
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
		body, err := encode(keyBody{bodyVersion, it.id}, "the idempotency key of", it.id)
		if err != nil {
			return nil, err
		}
		it.addKey(idempotencyKey(c.Next.Entity, c.Next.Idempotency), store.Nonce{}, body)
	case c.Drop:
		return it, x.dropKey(ctx, it, idempotencyKey(c.Next.Entity, c.Next.Idempotency))
	}
	return it, nil
}

// addFile adds the changes of the file and its entry, which have one nonce.
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

// dropKey adds the deletion of an idempotency key, if it names this file. An Expired file
// whose key has begun another one is dropped alone.
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
	// callTimeout bounds a call of the store, which its client cannot cancel.
	callTimeout = 30 * time.Second
	// retryInterval is the time between two tries.
	retryInterval = 200 * time.Millisecond
)

// applyDetached applies changes. The end of ctx does not cancel it.
func (x *Index) applyDetached(ctx context.Context, changes []store.Change) ([]store.Outcome, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	out, err := x.store.Apply(ctx, changes)
	for i := 0; i < len(out) && err == nil; i++ {
		err = out[i].Err
	}
	return out, err
}

// writeWithoutUsage makes a change that neither the usage nor an idempotency key is part of. After an
// unclear answer it sends the same change again: its nonce shows whether it landed.
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

// outcome returns nil if the outcomes of an item's changes show that it was made, and
// ErrConflict if they show that the row has changed.
func (x *Index) outcome(ctx context.Context, it *item, out []store.Outcome) error {
	switch o := &out[0]; {
	case o.Applied:
		return nil
	case !o.Refused:
	case o.Current == nil && it.drops, o.Current != nil && (o.Current.Nonce == it.nonce || it.creates):
		return nil // sent before
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
