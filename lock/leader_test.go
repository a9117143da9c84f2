package lock

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/buckettest"
)

type leadership struct {
	name  string
	token int64
	ctx   context.Context
	done  chan error
}

// candidate runs Lead in the background. A leadership lasts until its context ends, or until it
// receives the error to return.
func (b *bubble) candidate(ctx context.Context, who string, m *Mutex, terms chan<- *leadership) <-chan error {
	ended := make(chan error, 1)
	go func() {
		ended <- m.Lead(ctx, func(ctx context.Context, token int64) error {
			l := &leadership{who, token, ctx, make(chan error)}
			terms <- l
			select {
			case err := <-l.done:
				return err
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	}()
	return ended
}

func TestLead(t *testing.T) {
	onBoth(t, func(b *bubble) {
		terms := make(chan *leadership)
		u := b.user()
		ann := b.candidate(b.Context(), "ann", u.mutex(Config{TTL: ttl}), terms)
		first := <-terms
		ctx, stop := context.WithCancel(b.Context())
		bob := b.candidate(ctx, "bob", b.mutex(Config{TTL: ttl}), terms)
		sleep(5 * ttl)
		b.noError(first.ctx.Err())

		rec, err := b.user().bucket.ForceRelease(b.Context(), "k", first.token)
		b.noError(err)
		began := time.Now()
		second := <-terms
		b.wantDuration(time.Since(began), 0, ttl)
		if second.token <= rec.Token {
			b.Errorf("%s leads under %d, after %d", second.name, second.token, rec.Token)
		}
		<-first.ctx.Done()
		b.wantError(context.Cause(first.ctx), ErrLost)

		why := errors.New("broken")
		second.done <- why
		third := <-terms
		if third.name == second.name || third.token <= second.token {
			b.Errorf("after %s under %d, %s under %d", second.name, second.token, third.name, third.token)
		}
		ended, remaining := ann, bob
		if second.name == "bob" {
			ended, remaining = bob, ann
		}
		if err := <-ended; err != why {
			b.Errorf("it returns %v, want %v", err, why)
		}
		stop()
		third.finish(b, remaining)
	})
}

func (l *leadership) finish(b *bubble, ended <-chan error) {
	b.Helper()
	select {
	case l.done <- nil:
		b.noError(<-ended)
	case <-l.ctx.Done():
		b.wantError(<-ended, context.Canceled)
	}
}

func TestLeaderIsReplacedAfterCrash(t *testing.T) {
	onBoth(t, func(b *bubble) {
		h := b.acquireWithoutRenewal(b.mutex(Config{TTL: ttl}))
		began := time.Now()
		terms := make(chan *leadership)
		ended := b.candidate(b.Context(), "bob", b.mutex(Config{TTL: ttl}), terms)
		l := <-terms
		b.wantDuration(time.Since(began), ttl, ttl+ttl*clockTolerance/100+2*time.Second)
		if l.token <= h.at.rec.Token {
			b.Errorf("it leads under %d, after %d", l.token, h.at.rec.Token)
		}
		l.done <- nil
		b.noError(<-ended)
	})
}

func TestLeaderWaitsAgainAfterLoss(t *testing.T) {
	onBoth(t, func(b *bubble) {
		u := b.user()
		terms := make(chan *leadership)
		ended := b.candidate(b.Context(), "ann", u.mutex(Config{TTL: ttl}), terms)
		var token int64
		for range 3 {
			l := <-terms
			if l.token <= token {
				b.Errorf("token %d after %d", l.token, token)
			}
			_, err := b.user().bucket.ForceRelease(b.Context(), "k", l.token)
			b.noError(err)
			token = l.token
		}
		l := <-terms
		l.done <- nil
		b.noError(<-ended)
	})
}

func TestLeadResumesAfterOutage(t *testing.T) {
	for _, kind := range []error{bucket.ErrUnavailable, bucket.ErrUnclear, bucket.ErrConflict} {
		t.Run(kind.Error(), func(t *testing.T) { inBubble(t, func(b *bubble) { b.testOutage(kind) }) })
	}
}

func (b *bubble) testOutage(kind error) {
	b.Helper()
	terms := make(chan *leadership)
	ctx, stop := context.WithCancel(b.Context())
	var ended []<-chan error
	var up atomic.Bool
	for _, who := range []string{"ann", "bob", "cyd"} {
		u := b.user()
		down := func(ctx context.Context, do func(context.Context) error) error {
			if up.Load() {
				return do(ctx)
			}
			return kind
		}
		u.calls.Next(buckettest.Put, slices.Repeat([]buckettest.Fault{down}, 10_000)...)
		if kind == bucket.ErrUnavailable {
			u.calls.Next(buckettest.Get, slices.Repeat([]buckettest.Fault{down}, 10_000)...)
		}
		ended = append(ended, b.candidate(ctx, who, u.mutex(Config{TTL: ttl}), terms))
	}
	up.Store(true)
	first := <-terms
	up.Store(false)
	<-first.ctx.Done()
	b.wantError(context.Cause(first.ctx), ErrLost, "could not be renewed")
	b.wantError(context.Cause(first.ctx), kind)
	sleep(5 * outageTimeout)
	up.Store(true)
	began := time.Now()
	second := <-terms
	b.wantDuration(time.Since(began), 0, ttl+ttl*clockTolerance/100+4*time.Second)
	stop()
	<-second.ctx.Done()
	for _, e := range ended {
		b.wantError(<-e, context.Canceled)
	}
}

func TestPanicReleasesLeadership(t *testing.T) {
	onBoth(t, func(b *bubble) {
		func() {
			defer func() {
				if recover() == nil {
					b.Error("the panic did not reach the caller")
				}
			}()
			_ = b.mutex(Config{TTL: ttl}).Lead(b.Context(), func(context.Context, int64) error { panic("work") })
		}()
		b.noError(b.mustAcquire(b.mutex(Config{}).TryAcquire(b.Context())).Release(b.Context()))
	})
}

func TestLeadEndsWithoutAnswers(t *testing.T) {
	onBoth(t, func(b *bubble) {
		u := b.user()
		ctx, stop := context.WithCancel(b.Context())
		terms := make(chan *leadership)
		ended := b.candidate(ctx, "ann", u.mutex(Config{}), terms)
		<-terms
		for _, op := range []buckettest.Op{buckettest.Get, buckettest.Put} {
			u.calls.Next(op, slices.Repeat([]buckettest.Fault{noAnswer}, 100)...)
		}
		began := time.Now()
		stop()
		b.wantError(<-ended, context.Canceled)
		b.wantDuration(time.Since(began), 0, cleanUpTimeout)
	})
}

func TestLeadReturnsPermanentError(t *testing.T) {
	onBoth(t, func(b *bubble) {
		u := b.user()
		u.calls.Next(buckettest.Put, buckettest.Answer(bucket.ErrDenied))
		b.wantError(u.mutex(Config{}).Lead(b.Context(), nil), bucket.ErrDenied)
	})
}

func TestLeadEndsWithContext(t *testing.T) {
	onBoth(t, func(b *bubble) {
		ctx, cancel := context.WithCancelCause(b.Context())
		terms := make(chan *leadership)
		ended := b.candidate(ctx, "ann", b.mutex(Config{TTL: ttl}), terms)
		<-terms
		other := b.candidate(b.withTimeout(ttl), "bob", b.mutex(Config{TTL: ttl}), terms)
		err := <-other
		b.wantError(err, ErrHeld)
		b.wantError(err, context.DeadlineExceeded)
		why := errors.New("enough")
		cancel(why)
		b.wantError(<-ended, why)
		if rec, err := b.user().bucket.Show(b.Context(), "k"); err != nil || rec.State != Released {
			b.Errorf("left behind: %+v, %v", rec, err)
		}
	})
}
