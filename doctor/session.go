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
	maxTries = 3
	// patience is waited before a request is sent again; then twice as long.
	// Some stores take one write a second for each key.
	retryDelay = 500 * time.Millisecond
	// cleanTime is how long cleaning up may take, after the caller has gone.
	cleanUpTime = 30 * time.Second
	// lateTime bounds the wait for an unanswered write to land, so that it is
	// removed as well.
	lateWriteWait = 2 * time.Second
)

// lab is a prefix of a bucket that only this examination uses.
type session struct {
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

func newSession(store bucket.Store, bucketName, prefix string) *session {
	return &session{store: store, bucket: bucketName, prefix: prefix + folder + rand.Text() + "/", keys: map[string]bool{}}
}

func (s *session) ref(key string) event.Object {
	return event.Object{Bucket: s.bucket, Key: s.prefix + key}
}

// content returns a unique text: reading it tells our write from all others.
func content() string { return "pawl doctor " + rand.Text() }

// enter does without conditions what the checks do with them. The listing comes
// first: a bucket that cannot be reached is not written to.
func (s *session) preflight(ctx context.Context) error {
	if _, err := s.list(ctx); err != nil {
		return err
	}
	ref, text := s.ref("enter"), content()
	if _, err := s.expectAccepted(ctx, ref, text, bucket.Condition{}); err != nil {
		return flawToInvalid(err)
	}
	if _, err := s.read(ctx, ref); err != nil {
		return err
	}
	return s.store.Delete(ctx, ref, bucket.Condition{})
}

// unlabelled turns a flaw into an error of package bucket.
func flawToInvalid(err error) error {
	if _, ok := errors.AsType[*flaw](err); ok {
		return fmt.Errorf("%w: %w", bucket.ErrInvalid, err)
	}
	return err
}

// put sends a write once.
func (s *session) put(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition) (etag string, err error) {
	if s.method != 0 {
		etag, err = s.putCopy(ctx, ref, o, c)
	} else {
		etag, err = s.store.Put(ctx, ref, o, c)
	}
	s.noteWrite(ref, err)
	return etag, err
}

// mark notes that an object may exist, after an answer to its write.
func (s *session) noteWrite(ref event.Object, answer error) {
	if answer == nil || errors.Is(answer, bucket.ErrUnclear) && unsent(answer) == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.keys[ref.Key] = true
	}
}

func object(text string) bucket.Object {
	return bucket.Object{Body: strings.NewReader(text), Size: int64(len(text)), ContentType: "text/plain"}
}

// seen is an object as a read shows it. The zero seen is none.
type snapshot struct {
	exists     bool
	etag, text string
}

// look reads an object.
func (s *session) read(ctx context.Context, ref event.Object) (snapshot, error) {
	for try := 1; ; try++ {
		info, body, err := s.store.Get(ctx, ref)
		if errors.Is(err, bucket.ErrNotFound) {
			return snapshot{}, nil
		}
		if err != nil {
			return snapshot{}, err
		}
		text, err := io.ReadAll(body)
		_ = body.Close() // what was read is all of it
		if err == nil {
			return snapshot{true, info.ETag, string(text)}, nil
		}
		if try == maxTries || !pause(ctx, try) {
			return snapshot{}, err
		}
	}
}

// list returns the ETags of what a listing of the lab shows, by key.
func (s *session) list(ctx context.Context) (map[string]string, error) {
	etags := make(map[string]string)
	for info, err := range s.store.List(ctx, s.bucket, s.prefix, "") {
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
func (s *session) write(ctx context.Context, ref event.Object, text string, c bucket.Condition, trust cell.Trust) (fate cell.Outcome, etag string, err error) {
	return s.writeWith(ctx, ref, text, trust, func(ctx context.Context, o bucket.Object) (string, error) { return s.put(ctx, ref, o, c) })
}

// settle is write by a request of another kind.
func (s *session) writeWith(ctx context.Context, ref event.Object, text string, trust cell.Trust, send func(context.Context, bucket.Object) (string, error)) (fate cell.Outcome, etag string, err error) {
	w := cell.Write{
		Send: func(ctx context.Context) (err error) {
			etag, err = send(ctx, object(text))
			if dial := unsent(err); dial != nil {
				return fmt.Errorf("%w: %w", cell.ErrUnsent, dial)
			}
			return err
		},
		Look: func(ctx context.Context, answer error) (cell.Outcome, error) {
			now, err := s.read(ctx, ref)
			switch {
			case err == nil && now.text == text:
				etag = now.etag
				return cell.Landed, nil
			case err == nil && errors.Is(answer, bucket.ErrPrecondition):
				return cell.Lost, nil
			}
			return cell.Unclear, err
		},
		Pace:  backOff,
		Trust: trust, Resolves: 1,
	}
	fate, err = w.Run(ctx)
	s.noteUnanswered(w.Unanswered > 0)
	return fate, etag, err
}

// again waits before a request is sent again.
func backOff(ctx context.Context, try int, answer error) error {
	switch {
	case try < maxTries && pause(ctx, try):
		return nil
	case errors.Is(answer, cell.ErrUnsent):
		return fmt.Errorf("%w: %w", bucket.ErrUnavailable, answer)
	}
	return answer
}

// accept makes a write whose condition holds.
func (s *session) expectAccepted(ctx context.Context, ref event.Object, text string, c bucket.Condition) (etag string, err error) {
	fate, etag, err := s.write(ctx, ref, text, c, cell.Trust{Refusal: true})
	if err == nil && fate != cell.Landed {
		err = broken("a write with %s was refused, although the condition held", header(c))
	}
	return etag, err
}

// refuse makes a write whose condition does not hold, and that must not change
// what is there.
func (s *session) expectUnchanged(ctx context.Context, ref event.Object, c bucket.Condition, want snapshot) error {
	if c == (bucket.Condition{}) {
		return bucket.ErrNoETag
	}
	text := content()
	fate, _, err := s.write(ctx, ref, text, c, cell.Trust{Refusal: true, Precondition: true})
	if err != nil {
		return err
	}
	if fate == cell.Landed {
		return ignored("a write with %s was accepted, although the condition did not hold", header(c))
	}
	now, err := s.read(ctx, ref)
	switch {
	case err != nil:
		return err
	case now.text == text:
		return broken("a write with %s was refused, and landed all the same", header(c))
	case now.text != want.text:
		return s.stale("after a write with %s was refused, there is something else than before", header(c))
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
func (s *session) noteUnanswered(unanswered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unanswered = s.unanswered || unanswered
}

// stale is a read that does not show the last write. Where one of an earlier
// write may have landed late, it proves nothing.
func (s *session) stale(format string, args ...any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unanswered {
		return fmt.Errorf("%w: %s, but an earlier write may have landed late", bucket.ErrUnclear, fmt.Sprintf(format, args...))
	}
	return broken(format, args...)
}

// clean removes what the lab may hold.
func (s *session) cleanUp(ctx context.Context) error {
	if len(s.keys) == 0 {
		return nil
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer stop()
	if s.unanswered && !s.quick {
		_ = process.Sleep(ctx, lateWriteWait) // cleaning up fails if ctx has ended
	}
	err := s.removeAll(ctx)
	if s.quick {
		if err != nil {
			err = fmt.Errorf("cleaning up: %w", err)
		}
		return err
	}
	if listed, listErr := s.list(ctx); listErr == nil {
		for key := range listed {
			s.keys[key] = true
		}
		if len(listed) > 0 {
			err = s.removeAll(ctx)
		}
	} else {
		err = errors.Join(err, listErr)
	}
	if err != nil {
		return fmt.Errorf("cleaning up (remove by hand what is left below %s): %w", event.Quote("s3://"+s.bucket+"/"+s.prefix), err)
	}
	return nil
}

// removeAll removes every key that was written, and returns the first error.
func (s *session) removeAll(ctx context.Context) (first error) {
	for key := range s.keys {
		ref := event.Object{Bucket: s.bucket, Key: key}
		if _, err := s.remove(ctx, ref, bucket.Condition{}); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// remove removes an object, and reports whether the store says so.
func (s *session) remove(ctx context.Context, ref event.Object, c bucket.Condition) (removed bool, err error) {
	for try := 1; ; try++ {
		err := s.store.Delete(ctx, ref, c)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, bucket.ErrPrecondition):
			return false, nil
		case !errors.Is(err, bucket.ErrUnclear) && !errors.Is(err, bucket.ErrConflict):
			return false, err
		}
		if stop := backOff(ctx, try, err); stop != nil {
			return false, stop
		}
	}
}

// pause waits before a request is sent again. It is not ok if ctx ended.
func pause(ctx context.Context, try int) (ok bool) {
	return process.Sleep(ctx, retryDelay*time.Duration(try)) == nil
}

// unsent returns why a write was not even sent, if no connection came about.
func unsent(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return op
	}
	return nil
}
