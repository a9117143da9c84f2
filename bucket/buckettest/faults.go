package buckettest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
)

// Op is an operation of a store.
type Op string

// Operations that can fail.
const (
	Head   Op = "Head"
	Get    Op = "Get"
	Put    Op = "Put"
	Delete Op = "Delete"
	List   Op = "List"
)

// Fault replaces one call. It may call do any number of times, immediately or later.
type Fault func(ctx context.Context, do func(context.Context) error) error

// Faults is a store with injected faults. It is safe for concurrent use.
type Faults struct {
	below bucket.Store

	mu    sync.Mutex
	next  map[Op][]Fault
	calls map[Op]int
}

var _ bucket.Store = (*Faults)(nil)

// NewFaults returns a store that forwards calls to the store below.
func NewFaults(below bucket.Store) *Faults {
	return &Faults{below: below, next: map[Op][]Fault{}, calls: map[Op]int{}}
}

// Next appends faults for the next calls of op.
func (f *Faults) Next(op Op, faults ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next[op] = append(f.next[op], faults...)
}

// Calls returns the number of calls of op.
func (f *Faults) Calls(op Op) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[op]
}

func (f *Faults) call(ctx context.Context, op Op, do func(context.Context) error) error {
	f.mu.Lock()
	f.calls[op]++
	fault := Pass
	if queue := f.next[op]; len(queue) > 0 {
		fault, f.next[op] = queue[0], queue[1:]
	}
	f.mu.Unlock()
	return fault(ctx, do)
}

// Pass performs the call without a fault.
func Pass(ctx context.Context, do func(context.Context) error) error { return do(ctx) }

// Landed performs the write and returns a timeout.
func Landed(ctx context.Context, do func(context.Context) error) error {
	if err := do(ctx); err != nil {
		return err
	}
	return fmt.Errorf("%w: timed out (a fault, after it landed)", bucket.ErrUnclear)
}

// Lost returns a timeout without performing the write.
func Lost(context.Context, func(context.Context) error) error {
	return fmt.Errorf("%w: timed out (a fault, before it was sent)", bucket.ErrUnclear)
}

// Twice performs the call twice, like a proxy with retries, and returns the second result.
func Twice(ctx context.Context, do func(context.Context) error) error {
	if err := do(ctx); err != nil {
		return err
	}
	return do(ctx)
}

// Answer returns an error without performing the call.
func Answer(kind error) Fault {
	return func(context.Context, func(context.Context) error) error {
		return fmt.Errorf("%w (a fault)", kind)
	}
}

// Late returns a timeout. The write lands when the test calls *land.
func Late(land *func() error) Fault {
	return func(ctx context.Context, do func(context.Context) error) error {
		*land = func() error { return do(context.WithoutCancel(ctx)) }
		return Lost(ctx, do)
	}
}

// Hold closes reached, and performs the call when release is closed or returns when the context
// ends.
func Hold(reached chan<- struct{}, release <-chan struct{}) Fault {
	return func(ctx context.Context, do func(context.Context) error) error {
		close(reached)
		select {
		case <-release:
			return do(ctx)
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", bucket.ErrUnclear, context.Cause(ctx))
		}
	}
}

// Between calls the function meanwhile, and then performs the call.
func Between(meanwhile func()) Fault {
	return func(ctx context.Context, do func(context.Context) error) error {
		meanwhile()
		return do(ctx)
	}
}

// Head implements [bucket.Store].
func (f *Faults) Head(ctx context.Context, ref event.Object) (info bucket.Info, err error) {
	err = f.call(ctx, Head, func(ctx context.Context) error {
		info, err = f.below.Head(ctx, ref)
		return err
	})
	return info, err
}

// Get implements [bucket.Store].
func (f *Faults) Get(ctx context.Context, ref event.Object) (info bucket.Info, body io.ReadCloser, err error) {
	err = f.call(ctx, Get, func(ctx context.Context) error {
		info, body, err = f.below.Get(ctx, ref)
		return err
	})
	return info, body, err
}

// Put implements [bucket.Store]. It buffers the body for faults that send it again or later.
func (f *Faults) Put(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
	return f.write(ctx, o, func(ctx context.Context, o bucket.Object) (string, error) { return f.below.Put(ctx, ref, o, c) })
}

// PutSigned implements [bucket.Expirer] and counts as Put.
func (f *Faults) PutSigned(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition, signed time.Time, valid time.Duration) (string, error) {
	return f.write(ctx, o, func(ctx context.Context, o bucket.Object) (string, error) {
		return f.below.(bucket.Expirer).PutSigned(ctx, ref, o, c, signed, valid)
	})
}

// StoreTime implements [bucket.Expirer].
func (f *Faults) StoreTime(now time.Time) time.Time { return f.below.(bucket.Expirer).StoreTime(now) }

// Copy implements [bucket.Copier] and counts as Put.
func (f *Faults) Copy(ctx context.Context, m bucket.CopyMethod, from bucket.Source, ref event.Object, o bucket.Object, c bucket.Condition) (etag string, err error) {
	err = f.call(ctx, Put, func(ctx context.Context) error {
		etag, err = f.below.(bucket.Copier).Copy(ctx, m, from, ref, o, c)
		return err
	})
	return etag, err
}

func (f *Faults) write(ctx context.Context, o bucket.Object, send func(context.Context, bucket.Object) (string, error)) (etag string, err error) {
	var data []byte
	if o.Body != nil {
		if data, err = io.ReadAll(o.Body); err != nil {
			return "", fmt.Errorf("%w: reading the body: %w", bucket.ErrUnclear, err)
		}
	}
	err = f.call(ctx, Put, func(ctx context.Context) error {
		o.Body = bytes.NewReader(data)
		etag, err = send(ctx, o)
		return err
	})
	return etag, err
}

// Delete implements [bucket.Store].
func (f *Faults) Delete(ctx context.Context, ref event.Object, c bucket.Condition) error {
	return f.call(ctx, Delete, func(ctx context.Context) error { return f.below.Delete(ctx, ref, c) })
}

// List implements [bucket.Store]. Only the start of a listing can fail.
func (f *Faults) List(ctx context.Context, name, prefix, startAfter string) iter.Seq2[bucket.Info, error] {
	return func(yield func(bucket.Info, error) bool) {
		if err := f.call(ctx, List, func(context.Context) error { return nil }); err != nil {
			yield(bucket.Info{}, err)
			return
		}
		f.below.List(ctx, name, prefix, startAfter)(yield)
	}
}
