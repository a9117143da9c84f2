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

// leading is a term of office.
type leading struct {
	who   string
	token int64
	ctx   context.Context
	done  chan error
}

// candidate lets somebody stand for leader. Each term is told, and lasts until
// its context ends or it is told what to return.
func (b *bubble) candidate(ctx context.Context, who string, m *Mutex, terms chan<- *leading) <-chan error {
	ended := make(chan error, 1)
	go func() {
		ended <- m.Lead(ctx, func(ctx context.Context, token int64) error {
			l := &leading{who, token, ctx, make(chan error)}
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
		terms := make(chan *leading)
		u := b.user()
		ann := b.candidate(b.Context(), "ann", u.mutex(Config{TTL: ttl}), terms)
		first := <-terms
		ctx, stop := context.WithCancel(b.Context())
		bob := b.candidate(ctx, "bob", b.mutex(Config{TTL: ttl}), terms)
		sleep(5 * ttl)
		b.done(first.ctx.Err())

		rec, err := b.user().bucket.ForceRelease(b.Context(), "k", first.token)
		b.done(err)
		began := time.Now()
		second := <-terms
		b.about(time.Since(began), 0, ttl)
		if second.token <= rec.Token {
			b.Errorf("%s leads under %d, after %d", second.who, second.token, rec.Token)
		}
		<-first.ctx.Done()
		b.refused(context.Cause(first.ctx), ErrLost)

		// Whoever leads is done with it, and the other takes over. What the work
		// returns is returned as it is.
		why := errors.New("broken")
		second.done <- why
		third := <-terms
		if third.who == second.who || third.token <= second.token {
			b.Errorf("after %s under %d, %s under %d", second.who, second.token, third.who, third.token)
		}
		ended, goesOn := ann, bob
		if second.who == "bob" {
			ended, goesOn = bob, ann
		}
		if err := <-ended; err != why {
			b.Errorf("it returns %v, want %v", err, why)
		}
		stop()
		third.end(b, goesOn)
	})
}

// end ends a term, by the candidate's context or by its work.
func (l *leading) end(b *bubble, ended <-chan error) {
	b.Helper()
	select {
	case l.done <- nil:
		b.done(<-ended)
	case <-l.ctx.Done():
		b.refused(<-ended, context.Canceled)
	}
}

// TestLeadAfterACrash checks that another candidate leads after a leader's process died.
func TestLeadAfterACrash(t *testing.T) {
	onBoth(t, func(b *bubble) {
		h := b.stopped(b.mutex(Config{TTL: ttl}))
		began := time.Now()
		terms := make(chan *leading)
		ended := b.candidate(b.Context(), "bob", b.mutex(Config{TTL: ttl}), terms)
		l := <-terms
		b.about(time.Since(began), ttl, ttl+ttl*rate/100+2*time.Second)
		if l.token <= h.at.rec.Token {
			b.Errorf("it leads under %d, after %d", l.token, h.at.rec.Token)
		}
		l.done <- nil
		b.done(<-ended)
	})
}

// TestLeadAgain: who has lost the lease waits for it again.
func TestLeadAgain(t *testing.T) {
	onBoth(t, func(b *bubble) {
		u := b.user()
		terms := make(chan *leading)
		ended := b.candidate(b.Context(), "ann", u.mutex(Config{TTL: ttl}), terms)
		var token int64
		for range 3 {
			l := <-terms
			if l.token <= token {
				b.Errorf("token %d after %d", l.token, token)
			}
			_, err := b.user().bucket.ForceRelease(b.Context(), "k", l.token)
			b.done(err)
			token = l.token
		}
		l := <-terms
		l.done <- nil
		b.done(<-ended)
	})
}

// TestLeadAfterAnOutage: a store that gave no answer for long is no reason to have
// no leader any more.
func TestLeadAfterAnOutage(t *testing.T) {
	for _, kind := range []error{bucket.ErrUnavailable, bucket.ErrUnclear, bucket.ErrConflict} {
		t.Run(kind.Error(), func(t *testing.T) { inBubble(t, func(b *bubble) { b.outage(kind) }) })
	}
}

// outage is one in which every write is answered by an error of a kind.
func (b *bubble) outage(kind error) {
	b.Helper()
	terms := make(chan *leading)
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
		if kind == bucket.ErrUnavailable { // which no write is told
			u.calls.Next(buckettest.Get, slices.Repeat([]buckettest.Fault{down}, 10_000)...)
		}
		ended = append(ended, b.candidate(ctx, who, u.mutex(Config{TTL: ttl}), terms))
	}
	up.Store(true)
	first := <-terms
	up.Store(false)
	<-first.ctx.Done()
	b.refused(context.Cause(first.ctx), ErrLost, "could not be renewed")
	b.refused(context.Cause(first.ctx), kind)
	sleep(5 * outageTimeout)
	up.Store(true)
	began := time.Now()
	second := <-terms
	b.about(time.Since(began), 0, ttl+ttl*rate/100+4*time.Second)
	stop()
	<-second.ctx.Done()
	for _, e := range ended {
		b.refused(<-e, context.Canceled)
	}
}

// TestLeadThatPanics: the next one leads at once.
func TestLeadThatPanics(t *testing.T) {
	onBoth(t, func(b *bubble) {
		func() {
			defer func() {
				if recover() == nil {
					b.Error("the panic is gone")
				}
			}()
			_ = b.mutex(Config{TTL: ttl}).Lead(b.Context(), func(context.Context, int64) error { panic("work") }) // it does not return
		}()
		b.done(b.got(b.mutex(Config{}).TryAcquire(b.Context())).Release(b.Context()))
	})
}

// TestLeadThatEndsInSilence: one who is asked to end does not wait for a store that
// says nothing.
func TestLeadThatEndsInSilence(t *testing.T) {
	onBoth(t, func(b *bubble) {
		u := b.user()
		ctx, stop := context.WithCancel(b.Context())
		terms := make(chan *leading)
		ended := b.candidate(ctx, "ann", u.mutex(Config{}), terms)
		<-terms
		for _, op := range []buckettest.Op{buckettest.Get, buckettest.Put} {
			u.calls.Next(op, slices.Repeat([]buckettest.Fault{silent}, 100)...)
		}
		began := time.Now()
		stop()
		b.refused(<-ended, context.Canceled)
		b.about(time.Since(began), 0, cleanUpTimeout)
	})
}

// TestLeadIsRefused by the store, for good.
func TestLeadIsRefused(t *testing.T) {
	onBoth(t, func(b *bubble) {
		u := b.user()
		u.calls.Next(buckettest.Put, buckettest.Answer(bucket.ErrDenied))
		b.refused(u.mutex(Config{}).Lead(b.Context(), nil), bucket.ErrDenied)
	})
}

func TestLeadUntilTheEnd(t *testing.T) {
	onBoth(t, func(b *bubble) {
		ctx, cancel := context.WithCancelCause(b.Context())
		terms := make(chan *leading)
		ended := b.candidate(ctx, "ann", b.mutex(Config{TTL: ttl}), terms)
		<-terms
		other := b.candidate(b.within(ttl), "bob", b.mutex(Config{TTL: ttl}), terms)
		err := <-other
		b.refused(err, ErrHeld)
		b.refused(err, context.DeadlineExceeded)
		why := errors.New("enough")
		cancel(why)
		b.refused(<-ended, why)
		if rec, err := b.user().bucket.Show(b.Context(), "k"); err != nil || rec.State != Released {
			b.Errorf("left behind: %+v, %v", rec, err)
		}
	})
}
