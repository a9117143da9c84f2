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
	folder   = ".pawl-doctor/"
	maxTries = 3
	// The delay doubles. Some stores accept one write per second and key.
	retryDelay = 500 * time.Millisecond
	// cleanUpTime bounds the cleanup, even after the caller's context has ended.
	cleanUpTime = 30 * time.Second
	// lateWriteWait is for unanswered writes.
	lateWriteWait = 2 * time.Second
)

// A session has a prefix of the bucket to itself.
type session struct {
	store  bucket.Store
	bucket string
	prefix string // ends with a slash
	quick  bool   // few requests, without repetitions, and a short cleanup
	// method, if set, makes each write a copy.
	method bucket.CopyMethod

	mu         sync.Mutex
	keys       map[string]bool // objects that may exist
	unanswered bool            // an unanswered write may still land
}

func newSession(store bucket.Store, bucketName, prefix string) *session {
	return &session{store: store, bucket: bucketName, prefix: prefix + folder + rand.Text() + "/", keys: map[string]bool{}}
}

func (s *session) ref(key string) event.Object {
	return event.Object{Bucket: s.bucket, Key: s.prefix + key}
}

// content is unique, so that each write can be recognized.
func content() string { return "pawl doctor " + rand.Text() }

// preflight lists first, so that it writes nothing if the bucket is unreachable.
func (s *session) preflight(ctx context.Context) error {
	if _, err := s.list(ctx); err != nil {
		return err
	}
	ref, text := s.ref("preflight"), content()
	if _, err := s.expectAccepted(ctx, ref, text, bucket.Condition{}); err != nil {
		return flawToInvalid(err)
	}
	if _, err := s.read(ctx, ref); err != nil {
		return err
	}
	return s.store.Delete(ctx, ref, bucket.Condition{})
}

func flawToInvalid(err error) error {
	if _, ok := errors.AsType[*flaw](err); ok {
		return fmt.Errorf("%w: %w", bucket.ErrInvalid, err)
	}
	return err
}

func (s *session) put(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition) (etag string, err error) {
	if s.method != 0 {
		etag, err = s.putCopy(ctx, ref, o, c)
	} else {
		etag, err = s.store.Put(ctx, ref, o, c)
	}
	s.noteWrite(ref, err)
	return etag, err
}

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

// The zero snapshot is a missing object.
type snapshot struct {
	exists     bool
	etag, text string
}

// read retries if the body ends early.
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
		_ = body.Close()
		if err == nil {
			return snapshot{true, info.ETag, string(text)}, nil
		}
		if try == maxTries || !pause(ctx, try) {
			return snapshot{}, err
		}
	}
}

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

// write retries until the outcome is known. Otherwise the error matches ErrUnclear or
// ErrConflict.
func (s *session) write(ctx context.Context, ref event.Object, text string, c bucket.Condition, trust cell.Trust) (outcome cell.Outcome, etag string, err error) {
	return s.writeWith(ctx, ref, text, trust, func(ctx context.Context, o bucket.Object) (string, error) { return s.put(ctx, ref, o, c) })
}

func (s *session) writeWith(ctx context.Context, ref event.Object, text string, trust cell.Trust, send func(context.Context, bucket.Object) (string, error)) (outcome cell.Outcome, etag string, err error) {
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
	outcome, err = w.Run(ctx)
	s.noteUnanswered(w.Unanswered > 0)
	return outcome, etag, err
}

func backOff(ctx context.Context, try int, answer error) error {
	switch {
	case try < maxTries && pause(ctx, try):
		return nil
	case errors.Is(answer, cell.ErrUnsent):
		return fmt.Errorf("%w: %w", bucket.ErrUnavailable, answer)
	}
	return answer
}

func (s *session) expectAccepted(ctx context.Context, ref event.Object, text string, c bucket.Condition) (etag string, err error) {
	outcome, etag, err := s.write(ctx, ref, text, c, cell.Trust{Refusal: true})
	if err == nil && outcome != cell.Landed {
		err = broken("a write with %s was rejected, although the condition held", header(c))
	}
	return etag, err
}

func (s *session) expectUnchanged(ctx context.Context, ref event.Object, c bucket.Condition, want snapshot) error {
	if c == (bucket.Condition{}) {
		return bucket.ErrNoETag
	}
	text := content()
	outcome, _, err := s.write(ctx, ref, text, c, cell.Trust{Refusal: true, Precondition: true})
	if err != nil {
		return err
	}
	if outcome == cell.Landed {
		return ignored("a write with %s was accepted, although the condition did not hold", header(c))
	}
	now, err := s.read(ctx, ref)
	switch {
	case err != nil:
		return err
	case now.text == text:
		return broken("a write with %s was rejected, but it landed", header(c))
	case now.text != want.text:
		return s.stale("after a write with %s was rejected, the object has another content", header(c))
	}
	return nil
}

func header(c bucket.Condition) string {
	switch {
	case c.IfAbsent:
		return "If-None-Match: *"
	case c.IfMatch != "":
		return "If-Match"
	}
	return "no condition"
}

func (s *session) noteUnanswered(unanswered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unanswered = s.unanswered || unanswered
}

// If a write without a response may have landed late, a stale read is no proof.
func (s *session) stale(format string, args ...any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unanswered {
		return fmt.Errorf("%w: %s, but an earlier write may have landed late", bucket.ErrUnclear, fmt.Sprintf(format, args...))
	}
	return broken(format, args...)
}

func (s *session) cleanUp(ctx context.Context) error {
	if len(s.keys) == 0 {
		return nil
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer stop()
	if s.unanswered && !s.quick {
		_ = process.Sleep(ctx, lateWriteWait)
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
		return fmt.Errorf("cleaning up failed, remove the objects below %s manually: %w", event.Quote("s3://"+s.bucket+"/"+s.prefix), err)
	}
	return nil
}

func (s *session) removeAll(ctx context.Context) (first error) {
	for key := range s.keys {
		ref := event.Object{Bucket: s.bucket, Key: key}
		if _, err := s.remove(ctx, ref, bucket.Condition{}); err != nil && first == nil {
			first = err
		}
	}
	return first
}

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

func pause(ctx context.Context, try int) (ok bool) {
	return process.Sleep(ctx, retryDelay*time.Duration(try)) == nil
}

// unsent returns the dial error, or nil.
func unsent(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return op
	}
	return nil
}
