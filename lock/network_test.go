package lock

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/simkit"
)

type storedObject struct {
	exists bool
	body   []byte
	meta   map[string]string
	token  int64 // highest token of a lease
	fence  int64 // highest fence of an update
	last   Record
}

// Like that of a store, the ETag depends on the bytes only.
func (r *storedObject) etag() string {
	h := fnv.New64a()
	h.Write(r.body)
	return fmt.Sprintf("%016x", h.Sum64())
}

type network struct{ *proc }

func (n *network) Get(ctx context.Context, ref event.Object) (bucket.Info, io.ReadCloser, error) {
	if n.faulty() && n.Tape.Chance(300) {
		n.wait(n.shortDelay())
		return bucket.Info{}, nil, bucket.ErrUnavailable
	}
	n.wait(n.shortDelay())
	r := *n.object(ref.Key)
	n.wait(n.readDelay())
	switch {
	case ctx.Err() != nil:
		return bucket.Info{}, nil, fmt.Errorf("%w: %w", bucket.ErrUnavailable, ctx.Err())
	case !r.exists:
		return bucket.Info{}, nil, bucket.ErrNotFound
	}
	info := bucket.Info{Key: ref.Key, ETag: r.etag(), Size: int64(len(r.body)), ContentType: "x", Metadata: maps.Clone(r.meta)}
	return info, io.NopCloser(bytes.NewReader(r.body)), nil
}

func (n *network) Head(context.Context, event.Object) (bucket.Info, error) {
	panic("not used by locks")
}

func (n *network) List(ctx context.Context, _, prefix, _ string) iter.Seq2[bucket.Info, error] {
	return func(yield func(bucket.Info, error) bool) {
		n.wait(n.shortDelay())
		if n.faulty() && n.Tape.Chance(300) {
			yield(bucket.Info{}, bucket.ErrUnavailable)
			return
		}
		var found []bucket.Info
		for _, key := range slices.Sorted(maps.Keys(n.objects)) {
			if r := n.objects[key]; r.exists && strings.HasPrefix(key, prefix) {
				found = append(found, bucket.Info{Key: key, ETag: r.etag(), Size: int64(len(r.body))})
			}
		}
		n.wait(n.readDelay())
		if ctx.Err() != nil {
			yield(bucket.Info{}, fmt.Errorf("%w: %w", bucket.ErrUnavailable, ctx.Err()))
			return
		}
		for _, info := range found {
			if !yield(info, nil) {
				return
			}
		}
	}
}

func (n *network) Put(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
	body, err := io.ReadAll(o.Body)
	if err != nil {
		return "", err
	}
	what := fmt.Sprintf("PUT %s by process %d", ref.Key, n.id)
	by := *n.threads.Current
	return n.change(ctx, what, func() (string, error) {
		r := n.object(ref.Key)
		switch {
		case c.IfAbsent && r.exists, c.IfMatch != "" && (!r.exists || r.etag() != c.IfMatch):
			return "", bucket.ErrPrecondition
		}
		r.exists, r.body, r.meta = true, body, maps.Clone(o.Metadata)
		n.checkWrite(ref.Key, r, &by)
		return r.etag(), nil
	})
}

func (n *network) Delete(ctx context.Context, ref event.Object, c bucket.Condition) error {
	_, err := n.change(ctx, "DELETE "+ref.Key, func() (string, error) {
		r := n.object(ref.Key)
		if c.IfMatch != "" && (!r.exists || r.etag() != c.IfMatch) {
			return "", bucket.ErrPrecondition
		}
		r.exists = false
		return "", nil
	})
	return err
}

var changeFaults = []simkit.Fault{
	simkit.Unsent, simkit.Lost, simkit.Late, simkit.Repeated, simkit.Twice, simkit.Conflict, simkit.SlowAnswer, simkit.SlowRequest, simkit.LandsAndConflicts,
}

func (n *network) change(ctx context.Context, what string, do func() (string, error)) (string, error) {
	if ctx.Err() != nil {
		return "", fmt.Errorf("%w: %w", bucket.ErrUnclear, ctx.Err())
	}
	fault, back := simkit.NoFault, n.shortDelay()
	if !n.calm {
		fault = n.Tape.Fault(n.plan.faults, changeFaults...)
	}
	var etag string
	var err error
	land := func(name string) func() {
		return func() {
			etag, err = do()
			n.Tracef("%s%s: %v", what, name, err)
		}
	}
	noAnswer := func(d time.Duration) (string, error) {
		n.wait(d)
		return "", bucket.ErrUnclear
	}
	if fault != simkit.Unsent && fault != simkit.Conflict && fault != simkit.Late {
		n.wait(n.shortDelay())
		if fault == simkit.SlowRequest {
			n.wait(n.Tape.UpTo(2 * n.plan.ttl))
		}
		land("")()
	}
	first, firstErr := etag, err
	switch fault {
	case simkit.Unsent, simkit.Lost:
		return noAnswer(n.timeoutDelay())
	case simkit.Late:
		n.After(n.Tape.UpTo(2*n.plan.ttl), land(", late"))
		return noAnswer(n.timeoutDelay())
	case simkit.Repeated:
		n.After(simkit.Pick(n.Tape, n.shortDelay(), n.Tape.UpTo(2*n.plan.ttl)), land(", a copy"))
	case simkit.Twice:
		land(", again")()
		first, firstErr = etag, err
	case simkit.Conflict, simkit.LandsAndConflicts:
		firstErr = bucket.ErrConflict
	case simkit.SlowAnswer:
		back = n.Tape.UpTo(2 * n.plan.ttl)
	}
	n.wait(back)
	if ctx.Err() != nil && n.Tape.Chance(500) { // the call is canceled before its answer
		return "", fmt.Errorf("%w: %w", bucket.ErrUnclear, ctx.Err())
	}
	return first, firstErr
}

func (n *network) faulty() bool { return !n.calm && n.Tape.Chance(n.plan.faults) }

func (n *network) shortDelay() time.Duration { return n.Tape.UpTo(50 * time.Millisecond) }

func (n *network) readDelay() time.Duration {
	if n.faulty() && n.Tape.Chance(300) {
		return n.Tape.UpTo(2 * n.plan.ttl)
	}
	return n.shortDelay()
}

func (n *network) timeoutDelay() time.Duration {
	return simkit.Pick(n.Tape, n.shortDelay(), n.plan.ttl/4, callTimeout)
}

func (w *simulation) object(key string) *storedObject {
	r := w.objects[key]
	if r == nil {
		r = &storedObject{}
		w.objects[key] = r
	}
	return r
}
