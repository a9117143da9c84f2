package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pawlhq/pawl/cell"
	"github.com/pawlhq/pawl/event"
)

// Config says how a lock is held. The zero Config is good.
type Config struct {
	// TTL is how long a lease lasts after each renewal: how long others wait
	// for a holder that is gone. It is renewed three times as often. Default
	// 30 s, from [MinTTL] to [MaxTTL].
	TTL time.Duration
	// ID is what others know this holder by, the number of a build, say: in at
	// most [MaxID] bytes of UTF-8. Two may have the same.
	ID string
	// Owner and Reason tell people who holds the lock and why, in at most
	// [MaxText] bytes of UTF-8 each. They decide nothing.
	Owner, Reason string
}

// What a Config may say; all else is [ErrConfig].
const (
	MinTTL = time.Second
	MaxTTL = 24 * time.Hour
	// MaxID bounds an id, in bytes.
	MaxID = 128
	// MaxText bounds an owner and a reason, in bytes each.
	MaxText = 1 << 10

	defaultTTL = 30 * time.Second
)

var (
	// ErrConfig: a lock or an update cannot be used like this.
	ErrConfig = errors.New("wrong use")
	// ErrHeld: another holder has the lock. The error is a *[HeldError].
	ErrHeld = errors.New("the lock is held")
	// ErrSlow: the store takes longer to answer than a lease lasts.
	ErrSlow = errors.New("the store takes longer to answer than the lease lasts")
	// ErrLost: another holder took the lease, or it was not renewed in time.
	ErrLost = errors.New("the lock was lost")
)

// HeldError says who holds a lock.
type HeldError struct {
	// Lock names it: s3://bucket/key, or register:name.
	Lock   string
	Record Record
	// Limit is our semaphore's limit, set where the holder counts to another one:
	// semaphores of different limits exclude each other.
	Limit int
}

// Error implements error.
func (e *HeldError) Error() string {
	if e.Record.Token == 0 {
		return fmt.Sprintf("%s: %s", e.Lock, ErrHeld)
	}
	s := fmt.Sprintf("%s: %s by %s", e.Lock, ErrHeld, e.Record.holder())
	if e.Limit > 0 {
		s += fmt.Sprintf("; it counts to %d, and not to %d: all must use the same limit", e.Record.Limit, e.Limit)
	}
	return s
}

// Is reports that it is an ErrHeld.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// gaveUp adds the holder that was seen last, if any, to the error with which ctx
// ended.
func (e *HeldError) gaveUp(ctx context.Context, err error) error {
	if e == nil || ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("%w: %w", e, err)
}

// holder names who holds the lock, for people.
func (r *Record) holder() string {
	s := "somebody"
	if r.Owner != "" {
		s = event.Quote(r.Owner)
	}
	if r.Host != "" {
		s += fmt.Sprintf(" on %s (pid %d)", event.Quote(r.Host), r.PID)
	}
	if r.ID != "" {
		s += " as " + event.Quote(r.ID)
	}
	s += fmt.Sprintf(" since %s", r.Since.UTC().Format(time.RFC3339))
	if r.Reason != "" {
		s += ": " + event.Quote(r.Reason)
	}
	return s
}

// Mutex is a lock on one object. It is safe for concurrent use. The goroutines
// that share one take turns, and hand the lock on with 1 request for each, for as
// long as its TTL, or for 20 seconds if that is longer. Then the next one waits for
// 2 seconds, so that other processes have their chance; so does one that takes it
// again and again.
type Mutex struct {
	place
	holder Record // what is written of its holders

	turns turns // of the goroutines that share it

	mu       sync.Mutex
	last     version // what was there at last, or nothing
	watch    watch
	disowned map[string]bool // nonces of this Mutex's writes that no goroutine holds the lock by
	since    time.Time       // when this process took it from another
	tired    bool            // this process had it for long, and lets others go first
	freed    freed
}

// freed is what this process has released last, and when.
type freed struct {
	nonce string
	at    time.Time
}

// watch is since when the object has not changed, on the watcher's clock.
type watch struct {
	nonce string
	since time.Time
}

// rate is by how much clocks may differ in rate, as a fraction of 100.
const rate = 5

// see notes what was there, and when the answer came that said so.
func (w *watch) see(v version, at time.Time) {
	if w.nonce != v.rec.Nonce {
		*w = watch{v.rec.Nonce, at}
	}
}

// left is how long the lease may last yet.
func (w *watch) left(r *Record, now time.Time) time.Duration {
	return r.ttl() + r.ttl()*rate/100 - now.Sub(w.since)
}

// Acquire waits until it holds the lock. It gives up when ctx ends, with its
// cause and who holds the lock, or when the store has not answered for a minute.
// It is the waiting that ctx bounds, and the lease's context is derived from it.
//
// It takes 2 requests, a GET and a PUT, or 1 if this Mutex held the lock last;
// while it waits about 45 GETs a minute, no more than 2 seconds apart.
func (m *Mutex) Acquire(ctx context.Context) (*Lease, error) { return m.lease(ctx, true) }

// TryAcquire is Acquire without waiting: if another holder has the lock it returns
// a *[HeldError]. A lease that its holder left behind is free only for those who
// have watched it for as long as it lasts: call it again. It lets
// no other holder go first.
func (m *Mutex) TryAcquire(ctx context.Context) (*Lease, error) { return m.lease(ctx, false) }

func (m *Mutex) lease(ctx context.Context, wait bool) (*Lease, error) {
	h, err := m.enter(ctx, wait)
	if err != nil {
		return nil, err
	}
	l := keep(ctx, h)
	l.release = m.release
	return l, nil
}

// acquire is what Acquire does, without the lease's goroutine.
func (m *Mutex) acquire(ctx context.Context, wait bool) (*hold, error) {
	now, seen, err := m.begin(ctx)
	if err != nil {
		return nil, err
	}
	pauses := m.polls()
	var busy *HeldError
	for {
		h, left, err := m.take(ctx, &now, &seen)
		switch {
		case h != nil:
			return h, nil
		case err != nil:
			return nil, busy.gaveUp(ctx, err)
		}
		if busy = (&HeldError{Lock: m.String(), Record: now.rec}); !wait {
			return nil, busy
		}
		if err := m.clock.Sleep(ctx, min(pauses.next(), left)); err != nil {
			return nil, fmt.Errorf("%w: %w", busy, err)
		}
		if now, seen, err = m.read(ctx); err != nil {
			return nil, busy.gaveUp(ctx, err)
		}
	}
}

// take takes the lock if it can be claimed, and otherwise returns how long it
// cannot be yet. What it finds there it leaves in now and seen.
func (m *Mutex) take(ctx context.Context, now *version, seen *time.Time) (*hold, time.Duration, error) {
	for late := 0; ; {
		if left := m.claimable(*now, *seen); left > 0 {
			return nil, left, nil
		}
		w := m.place.write(*now, m.claim(*now))
		f, err := w.run(ctx)
		if err != nil {
			m.abandon(ctx, w)
			return nil, 0, err
		}
		*now, *seen = f.now, f.seen
		if f.fate != cell.Landed {
			continue // another holder was faster
		}
		h := &hold{mutex: m, at: f.now, sent: w.sent}
		if h.left(m.clock.Now()) > 0 {
			m.took(w.base)
			return h, 0, nil
		}
		m.disown(w.next.Nonce) // the answer came too late to hold anything
		if late++; late == maxLate {
			giveUp(ctx, h)
			return nil, 0, fmt.Errorf("taking the lock %s: %w, which is %v: choose a longer TTL", m, ErrSlow, h.ttl())
		}
	}
}

// maxLate is how often one takes a lock whose answer comes too late.
const maxLate = 3

// begin returns the last known version of the lock's object, and reads it if there
// is none.
func (m *Mutex) begin(ctx context.Context) (version, time.Time, error) {
	m.mu.Lock()
	last := m.last
	m.last = version{}
	m.mu.Unlock()
	if last.exists {
		return last, m.clock.Now(), nil
	}
	return m.read(ctx)
}

func (m *Mutex) read(ctx context.Context) (now version, seen time.Time, err error) {
	err = m.persist(ctx, func() error {
		now, err = m.get(ctx)
		seen = m.clock.Now()
		return err
	})
	if err != nil {
		return version{}, time.Time{}, fmt.Errorf("reading the lock %s: %w", m, err)
	}
	return now, seen, nil
}

// claimable returns for how long the lock cannot be claimed yet, as far as this
// process can know.
func (m *Mutex) claimable(now version, seen time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watch.see(now, seen)
	if !now.exists || now.rec.State == Released || m.disowned[now.rec.Nonce] {
		return 0
	}
	return m.watch.left(&now.rec, m.clock.Now())
}

// claim is the record that makes one the holder.
func (m *Mutex) claim(now version) Record {
	if !now.exists {
		return first(&m.holder, m.nonce(), m.clock.Now())
	}
	return now.rec.acquired(&m.holder, m.nonce(), m.clock.Now())
}

// abandonTime bounds the cleaning up after an acquisition that was given up.
const abandonTime = 5 * time.Second

// abandon releases the lock if the write of an acquisition that was given up has
// landed. If the store does not tell, the lock stays taken until its lease expires;
// only this Mutex may enter before.
func (m *Mutex) abandon(ctx context.Context, w *write) {
	if !w.unclear {
		return
	}
	m.disown(w.next.Nonce)
	ctx, stop := m.clock.Limit(context.WithoutCancel(ctx), abandonTime)
	defer stop()
	if now, err := m.get(ctx); err == nil && now.exists && now.rec.Nonce == w.next.Nonce {
		m.took(w.base)
		_ = (&hold{mutex: m, at: now}).release(ctx) // at worst the lease runs out
	}
}

// disown notes that this nonce has no holder.
func (m *Mutex) disown(nonce string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.disowned == nil {
		m.disowned = map[string]bool{}
	}
	m.disowned[nonce] = true
}
