package doctor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/cell"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/process"
)

const (
	// folder is what the keys of every examination have in common.
	folder = ".pawl-doctor/"
	// tries is how often a request is sent whose fate stays unclear.
	tries = 3
	// patience is waited before a request is sent again; then twice as long.
	// Some stores take one write a second for each key.
	patience = 500 * time.Millisecond
	// cleanTime is how long cleaning up may take, after the caller has gone.
	cleanTime = 30 * time.Second
	// lateTime bounds the wait for an unanswered write to land, so that it is
	// removed as well.
	lateTime = 2 * time.Second
)

// lab is a prefix of a bucket that only this examination uses.
type lab struct {
	store  bucket.Store
	bucket string
	prefix string // ends with a slash
	quick  bool   // few requests: checks do not repeat, and no listing finds what is left
	// method makes each write a copy of an object that is written before.
	method bucket.CopyMethod

	mu         sync.Mutex
	keys       map[string]bool // what may exist
	unanswered bool            // a write without an answer may land yet
}

func newLab(store bucket.Store, bucketName, prefix string) *lab {
	return &lab{store: store, bucket: bucketName, prefix: prefix + folder + rand.Text() + "/", keys: map[string]bool{}}
}

func (l *lab) ref(key string) event.Object {
	return event.Object{Bucket: l.bucket, Key: l.prefix + key}
}

// content returns a unique text: reading it tells our write from all others.
func content() string { return "pawl doctor " + rand.Text() }

// enter does without conditions what the checks do with them. The listing comes
// first: a bucket that cannot be reached is not written to.
func (l *lab) enter(ctx context.Context) error {
	if _, err := l.list(ctx); err != nil {
		return err
	}
	ref, text := l.ref("enter"), content()
	if _, err := l.accept(ctx, ref, text, bucket.Condition{}); err != nil {
		return unlabelled(err)
	}
	if _, err := l.look(ctx, ref); err != nil {
		return err
	}
	return l.store.Delete(ctx, ref, bucket.Condition{})
}

// unlabelled turns a flaw into an error of package bucket.
func unlabelled(err error) error {
	if _, ok := errors.AsType[*flaw](err); ok {
		return fmt.Errorf("%w: %w", bucket.ErrInvalid, err)
	}
	return err
}

// put sends a write once.
func (l *lab) put(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition) (etag string, err error) {
	if l.method != 0 {
		etag, err = l.putCopy(ctx, ref, o, c)
	} else {
		etag, err = l.store.Put(ctx, ref, o, c)
	}
	l.mark(ref, err)
	return etag, err
}

// mark notes that an object may exist, after an answer to its write.
func (l *lab) mark(ref event.Object, answer error) {
	if answer == nil || errors.Is(answer, bucket.ErrUnclear) && unsent(answer) == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.keys[ref.Key] = true
	}
}

func object(text string) bucket.Object {
	return bucket.Object{Body: strings.NewReader(text), Size: int64(len(text)), ContentType: "text/plain"}
}

// seen is an object as a read shows it. The zero seen is none.
type seen struct {
	exists     bool
	etag, text string
}

// look reads an object.
func (l *lab) look(ctx context.Context, ref event.Object) (seen, error) {
	for try := 1; ; try++ {
		info, body, err := l.store.Get(ctx, ref)
		if errors.Is(err, bucket.ErrNotFound) {
			return seen{}, nil
		}
		if err != nil {
			return seen{}, err
		}
		text, err := io.ReadAll(body)
		_ = body.Close() // what was read is all of it
		if err == nil {
			return seen{true, info.ETag, string(text)}, nil
		}
		if try == tries || !pause(ctx, try) {
			return seen{}, err
		}
	}
}

// list returns the ETags of what a listing of the lab shows, by key.
func (l *lab) list(ctx context.Context) (map[string]string, error) {
	etags := make(map[string]string)
	for info, err := range l.store.List(ctx, l.bucket, l.prefix, "") {
		if err != nil {
			return nil, err
		}
		etags[info.Key] = info.ETag
	}
	return etags, nil
}

// write sends a text until its fate is known, and looks for it where the answer
// does not say. The error matches ErrUnclear or ErrConflict where it never came to
// be known.
func (l *lab) write(ctx context.Context, ref event.Object, text string, c bucket.Condition, trust cell.Trust) (fate cell.Outcome, etag string, err error) {
	return l.settle(ctx, ref, text, trust, func(ctx context.Context, o bucket.Object) (string, error) { return l.put(ctx, ref, o, c) })
}

// settle is write by a request of another kind.
func (l *lab) settle(ctx context.Context, ref event.Object, text string, trust cell.Trust, send func(context.Context, bucket.Object) (string, error)) (fate cell.Outcome, etag string, err error) {
	w := cell.Write{
		Send: func(ctx context.Context) (err error) {
			etag, err = send(ctx, object(text))
			if dial := unsent(err); dial != nil {
				return fmt.Errorf("%w: %w", cell.ErrUnsent, dial)
			}
			return err
		},
		Look: func(ctx context.Context, answer error) (cell.Outcome, error) {
			now, err := l.look(ctx, ref)
			switch {
			case err == nil && now.text == text:
				etag = now.etag
				return cell.Landed, nil
			case err == nil && errors.Is(answer, bucket.ErrPrecondition):
				return cell.Lost, nil
			}
			return cell.Unclear, err
		},
		Pace:  again,
		Trust: trust, Resolves: 1,
	}
	fate, err = w.Run(ctx)
	l.late(w.Unanswered > 0)
	return fate, etag, err
}

// again waits before a request is sent again.
func again(ctx context.Context, try int, answer error) error {
	switch {
	case try < tries && pause(ctx, try):
		return nil
	case errors.Is(answer, cell.ErrUnsent):
		return fmt.Errorf("%w: %w", bucket.ErrUnavailable, answer)
	}
	return answer
}

// accept makes a write whose condition holds.
func (l *lab) accept(ctx context.Context, ref event.Object, text string, c bucket.Condition) (etag string, err error) {
	fate, etag, err := l.write(ctx, ref, text, c, cell.Trust{Refusal: true})
	if err == nil && fate != cell.Landed {
		err = broken("a write with %s was refused, although the condition held", header(c))
	}
	return etag, err
}

// refuse makes a write whose condition does not hold, and that must not change
// what is there.
func (l *lab) refuse(ctx context.Context, ref event.Object, c bucket.Condition, want seen) error {
	if c == (bucket.Condition{}) {
		return bucket.ErrNoETag
	}
	text := content()
	fate, _, err := l.write(ctx, ref, text, c, cell.Trust{Refusal: true, Precondition: true})
	if err != nil {
		return err
	}
	if fate == cell.Landed {
		return ignored("a write with %s was accepted, although the condition did not hold", header(c))
	}
	now, err := l.look(ctx, ref)
	switch {
	case err != nil:
		return err
	case now.text == text:
		return broken("a write with %s was refused, and landed all the same", header(c))
	case now.text != want.text:
		return l.stale("after a write with %s was refused, there is something else than before", header(c))
	}
	return nil
}

// header names a condition.
func header(c bucket.Condition) string {
	switch {
	case c.IfAbsent:
		return "If-None-Match: *"
	case c.IfMatch != "":
		return "If-Match"
	}
	return "no condition"
}

// late notes that a write may land yet.
func (l *lab) late(unanswered bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unanswered = l.unanswered || unanswered
}

// stale is a read that does not show the last write. Where one of an earlier
// write may have landed late, it proves nothing.
func (l *lab) stale(format string, args ...any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unanswered {
		return fmt.Errorf("%w: %s, but an earlier write may have landed late", bucket.ErrUnclear, fmt.Sprintf(format, args...))
	}
	return broken(format, args...)
}

// clean removes what the lab may hold.
func (l *lab) clean(ctx context.Context) error {
	if len(l.keys) == 0 {
		return nil
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
	defer stop()
	if l.unanswered && !l.quick {
		_ = process.Sleep(ctx, lateTime) // cleaning up fails if ctx has ended
	}
	err := l.removeAll(ctx)
	if l.quick {
		if err != nil {
			err = fmt.Errorf("cleaning up: %w", err)
		}
		return err
	}
	if listed, listErr := l.list(ctx); listErr == nil {
		for key := range listed {
			l.keys[key] = true
		}
		if len(listed) > 0 {
			err = l.removeAll(ctx)
		}
	} else {
		err = errors.Join(err, listErr)
	}
	if err != nil {
		return fmt.Errorf("cleaning up (remove by hand what is left below %s): %w", event.Quote("s3://"+l.bucket+"/"+l.prefix), err)
	}
	return nil
}

// removeAll removes every key that was written, and returns the first error.
func (l *lab) removeAll(ctx context.Context) (first error) {
	for key := range l.keys {
		ref := event.Object{Bucket: l.bucket, Key: key}
		if _, err := l.remove(ctx, ref, bucket.Condition{}); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// remove removes an object, and reports whether the store says so.
func (l *lab) remove(ctx context.Context, ref event.Object, c bucket.Condition) (removed bool, err error) {
	for try := 1; ; try++ {
		err := l.store.Delete(ctx, ref, c)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, bucket.ErrPrecondition):
			return false, nil
		case !errors.Is(err, bucket.ErrUnclear) && !errors.Is(err, bucket.ErrConflict):
			return false, err
		}
		if stop := again(ctx, try, err); stop != nil {
			return false, stop
		}
	}
}

// pause waits before a request is sent again. It is not ok if ctx ended.
func pause(ctx context.Context, try int) (ok bool) {
	return process.Sleep(ctx, patience*time.Duration(try)) == nil
}

// unsent returns why a write was not even sent, if no connection came about.
func unsent(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return op
	}
	return nil
}
