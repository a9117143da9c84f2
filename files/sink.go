package files

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/pawlhq/pawl/source"
)

// Sink reconciles the files that notifications name. It acknowledges a message only after the index
// has responded.
type Sink struct {
	service *Service
	bucket  string
	slots   *semaphore.Weighted // each message in progress holds one
	work    sync.WaitGroup
	ctx     context.Context // outlives the contexts of sources
	cancel  context.CancelFunc
}

var _ source.Sink = (*Sink)(nil)

// NewSink returns a Sink for a bucket that handles up to messages concurrently. Close it after all
// sources have ended.
func NewSink(service *Service, bucket string, messages int) *Sink {
	s := &Sink{service: service, bucket: bucket, slots: semaphore.NewWeighted(int64(messages))}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Close waits for the messages in progress. When ctx ends, it cancels them without an
// acknowledgement.
func (s *Sink) Close(ctx context.Context) {
	stop := context.AfterFunc(ctx, s.cancel)
	s.work.Wait()
	stop()
	s.cancel()
}

// Deliver implements [source.Sink].
func (s *Sink) Deliver(ctx context.Context, d source.Delivery) error {
	if err := s.slots.Acquire(ctx, 1); err != nil {
		return err
	}
	s.handle(&d)
	return nil
}

// TryDeliver implements [source.Sink].
func (s *Sink) TryDeliver(d source.Delivery) error {
	if !s.slots.TryAcquire(1) {
		return source.ErrFull
	}
	s.handle(&d)
	return nil
}

func (s *Sink) handle(d *source.Delivery) {
	s.work.Go(func() {
		defer s.slots.Release(1)
		d.Done(s.reconcile(d))
	})
}

func (s *Sink) reconcile(d *source.Delivery) (o source.Outcome) {
	for i := range d.Events {
		object := &d.Events[i].Object
		id, ours := s.service.ID(object.Key)
		if !ours || object.Bucket != s.bucket {
			o.Verdicts.Unmatched++
			continue
		}
		o.Verdicts.Raised++
		if err := s.service.ReconcileNotified(s.ctx, id); err != nil {
			o.Err = err
		}
	}
	o.Ack = o.Err == nil
	return o
}

// Two times noticeTimeout, for reconciliation and rescheduling, must be shorter than the timeout of
// a source.
const noticeTimeout = 8 * time.Second

// ReconcileNotified reconciles a file after a notification, which may be acknowledged if the error
// is nil. If the bucket does not respond, it schedules a retry in a minute, so that one object
// cannot block a queue. It logs and ignores an unreadable row.
func (s *Service) ReconcileNotified(ctx context.Context, id string) error {
	look, cancel := context.WithTimeout(ctx, noticeTimeout)
	defer cancel()
	_, failed := s.Reconcile(look, id, true)
	switch {
	case failed == nil, errors.Is(failed, ErrNotFound):
		return nil
	case errors.Is(failed, ErrUnreadable):
		s.warn(ctx, "files: ignored a notification, because a record of the index is unreadable", id, failed)
		return nil
	}
	change, cancel := context.WithTimeout(ctx, noticeTimeout)
	defer cancel()
	_, err := s.change(change, id, func(f *File) (File, error) { return f.rescheduled(s.now()), nil })
	if err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("files: reconcile %s: %w; schedule a retry: %w", id, failed, err)
	}
	s.warn(ctx, "files: could not reconcile a file after its notification; retrying in a minute", id, failed)
	return nil
}

func (s *Service) warn(ctx context.Context, text, id string, err error) {
	if s.Logger != nil {
		s.Logger.WarnContext(ctx, text, "file", id, "error", err)
	}
}
