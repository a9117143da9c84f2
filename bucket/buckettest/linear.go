package buckettest

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/linearizable"
)

// Several writers pin and publish one object concurrently. Requests are lost, repeated and late,
// and sometimes another program deletes the object. The calls must be linearizable if an output
// is a register and the results have these meanings:
//
//	nil                            it took effect once
//	ErrOutputChanged, and sure     the pinned content had changed; it had no effect
//	another error, sure            it had no effect
//	unsure                         in addition, each request may take effect late, or never
//
// Each publish has its own content, because a condition cannot distinguish equal contents.
var linearTests = map[string]func(*testing.T, Harness){"linear/output": testLinearOutput}

const (
	linearHistories = 6
	linearWriters   = 4
	linearCalls     = 10
)

func testLinearOutput(t *testing.T, h Harness) {
	first := linearizable.Seed(t)
	for n := range linearHistories {
		seed := first + uint64(n)
		if err := playOutput(t.Context(), h, fmt.Sprint("history ", n), seed); err != nil {
			t.Fatalf("%v\n%s", err, linearizable.Repeat(t, seed))
		}
	}
}

func playOutput(ctx context.Context, h Harness, key string, seed uint64) error {
	history := linearizable.New()
	errs := make([]error, linearWriters)
	var wg sync.WaitGroup
	for id := range errs {
		w := newWriter(id, h, key, seed, history)
		wg.Go(func() { errs[id] = w.run(ctx) })
	}
	wg.Wait()
	errs = append(errs, newWriter(linearWriters, h, key, seed, history).get(ctx), history.Check())
	return errors.Join(errs...)
}

type writer struct {
	id      int
	random  *rand.Rand
	harness Harness
	peek    *peek
	store   *Faults
	ref     event.Object
	history *linearizable.History

	made    int
	doubled int
	late    []func() error
}

func newWriter(id int, h Harness, key string, seed uint64, history *linearizable.History) *writer {
	p := &peek{Store: h.Store}
	return &writer{
		id: id, random: rand.New(rand.NewPCG(seed, uint64(id))), harness: h,
		peek: p, store: NewFaults(p), ref: h.ref(key), history: history,
	}
}

type peek struct {
	bucket.Store
	info bucket.Info
}

func (p *peek) Head(ctx context.Context, ref event.Object) (info bucket.Info, err error) {
	p.info, err = p.Store.Head(ctx, ref)
	return p.info, err
}

// mixed reports whether Head returned the metadata of one object with the ETag, an MD5, of
// another.
func (p *peek) mixed() bool {
	return p.info.ETag != fmt.Sprintf("%x", md5.Sum([]byte(p.info.Metadata["pawl-source"])))
}

func (w *writer) run(ctx context.Context) (err error) {
	for i := 0; i < linearCalls && err == nil; i++ {
		switch n := w.random.IntN(8); {
		case n == 0 && !w.harness.LosesRemovals:
			err = w.remove(ctx)
		case n == 1:
			err = w.get(ctx)
		case n == 2:
			w.land()
		default:
			w.attempt(ctx)
		}
		runtime.Gosched() // otherwise calls in memory do not overlap
	}
	w.land()
	return err
}

func (w *writer) fault() Fault {
	switch w.random.IntN(12) {
	case 0:
		return Landed
	case 1:
		return Lost
	case 2:
		return func(ctx context.Context, do func(context.Context) error) error {
			w.doubled++
			return Twice(ctx, do)
		}
	case 3:
		return func(ctx context.Context, do func(context.Context) error) error {
			var land func() error
			err := Late(&land)(ctx, do)
			w.late = append(w.late, land)
			return err
		}
	case 4:
		return Answer(bucket.ErrConflict)
	}
	return Pass
}

func (w *writer) land() {
	if n := len(w.late); n > 0 {
		i := w.random.IntN(n)
		_ = w.late[i]()
		w.late = append(w.late[:i], w.late[i+1:]...)
	}
}

func (w *writer) attempt(ctx context.Context) {
	from := w.history.Now()
	o, err := bucket.Pin(ctx, w.store, w.ref)
	if err != nil {
		return
	}
	pinned := ""
	if o.Exists() {
		if w.harness.MixesHeads && w.peek.mixed() {
			return // Head mixed two objects
		}
		pinned = "content that no writer published"
		if source, ok := o.Source(); ok {
			pinned = source
		}
	}
	w.add(from, w.history.Now(), linearizable.Read(pinned))
	for range w.random.IntN(4) {
		runtime.Gosched()
	}

	w.doubled = 0
	w.store.Next(Put, w.fault(), w.fault())
	w.store.Next(Delete, w.fault(), w.fault())
	if w.random.IntN(8) == 0 {
		w.store.Next(Head, Answer(bucket.ErrUnavailable))
	}
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	if w.random.IntN(10) == 0 {
		wg.Go(cancel)
	}
	next, change := w.change(ctx, o)
	sent := w.store.Calls(Put) + w.store.Calls(Delete)
	from = w.history.Now()
	r, err := change()
	to := w.history.Now()
	cancel()
	wg.Wait()
	sent = w.store.Calls(Put) + w.store.Calls(Delete) - sent
	w.changed(from, to, pinned, next, sent, r, err)
}

func (w *writer) change(ctx context.Context, o *bucket.Output) (next string, change func() (bucket.Result, error)) {
	if w.harness.DeleteAtomic && o.Exists() && w.random.IntN(3) == 0 {
		return "", func() (bucket.Result, error) { return o.Remove(ctx) }
	}
	w.made++
	next = fmt.Sprintf("%d/%d", w.id, w.made)
	body := func() (io.ReadCloser, error) { return closer{bytes.NewReader([]byte(next))}, nil }
	stamp := bucket.Stamp{Pipeline: "p", Object: "o", Source: next, Fence: int64(w.made), Nonce: next}
	return next, func() (bucket.Result, error) { return o.Publish(ctx, stamp, body, int64(len(next)), "text/plain") }
}

type closer struct{ *bytes.Reader }

func (closer) Close() error { return nil }

// A repeated copy of the request may land late, so such a change is not sure.
func (w *writer) changed(from, to time.Duration, pinned, next string, sent int, r bucket.Result, err error) {
	loose := w.doubled
	if !r.Sure {
		loose += sent
	}
	if err == nil && next != "" && !r.Sure {
		loose-- // one of them has landed
	}
	for range loose {
		w.add(from, to, linearizable.Unknown(pinned, next))
	}
	switch {
	case err == nil && next == "":
		w.add(from, to, linearizable.Gone(pinned))
	case err == nil:
		w.add(from, to, linearizable.Applied(pinned, next))
	case errors.Is(err, bucket.ErrOutputChanged) && r.Sure:
		w.add(from, to, linearizable.RefusedBySome(pinned, next))
	}
}

func (w *writer) remove(ctx context.Context) error {
	from := w.history.Now()
	if err := w.harness.Store.Delete(ctx, w.ref, bucket.Condition{}); err != nil {
		return err
	}
	w.add(from, w.history.Now(), linearizable.Removed())
	return nil
}

func (w *writer) get(ctx context.Context) error {
	from := w.history.Now()
	info, body, err := w.harness.Store.Get(ctx, w.ref)
	if errors.Is(err, bucket.ErrNotFound) {
		w.add(from, w.history.Now(), linearizable.Read(""))
		return nil
	}
	if err != nil {
		return err
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	value := info.Metadata["pawl-source"]
	if string(text) != value {
		value = fmt.Sprintf("the bytes %q with the metadata of %s", text, value)
	}
	w.add(from, w.history.Now(), linearizable.Read(value))
	return nil
}

func (w *writer) add(from, to time.Duration, op linearizable.Op) {
	w.history.Add(w.id, w.ref.Key, from, to, op)
}
