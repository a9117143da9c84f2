package lock

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlhq/pawl/event"
)

// MaxSlots is how many may hold a semaphore, or read at the same time.
const MaxSlots = 1000

// slots are numbered leases below one prefix, each held by one at a time.
type slots struct {
	*world
	name   string // the bucket's
	prefix string
	n      int // how many there may be
	holder Record

	turns turns            // of the goroutines that share them
	known map[string]*slot // by key; used in one's turn
}

// slot is one of them, as it was seen last.
type slot struct {
	mutex *Mutex
	now   version
	seen  time.Time
}

func (b *Bucket) slots(prefix string, n int, holder Record) *slots {
	return &slots{world: b.world, name: b.name, prefix: prefix, n: n, holder: holder, known: map[string]*slot{}}
}

func (s *slots) String() string { return event.Quote("s3://" + s.name + "/" + s.prefix) }

// slot returns the slot of a number.
func (s *slots) slot(i int) *slot {
	key := fmt.Sprintf("%s%04d", s.prefix, i)
	one := s.known[key]
	if one == nil {
		one = &slot{mutex: &Mutex{place: s.object(s.name, key), holder: s.holder}}
		s.known[key] = one
	}
	return one
}

// list returns the slots that have an object, with 1 request, and with 1 more for
// each whose object has changed since it was read last. Before each of these it
// calls meanwhile.
func (s *slots) list(ctx context.Context, meanwhile func(context.Context) error) (map[int]*slot, error) {
	found, err := s.listing(ctx, s.name, s.prefix)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", s, err)
	}
	there := map[int]*slot{}
	for _, info := range found {
		i, err := strconv.Atoi(strings.TrimPrefix(info.Key, s.prefix))
		if err != nil || i < 0 || i >= MaxSlots || fmt.Sprintf("%s%04d", s.prefix, i) != info.Key {
			continue
		}
		one := s.slot(i)
		if there[i] = one; one.now.exists && one.now.etag == info.ETag {
			continue
		}
		if err := meanwhile(ctx); err != nil {
			return nil, err
		}
		if one.now, one.seen, err = one.mutex.read(ctx); err != nil {
			return nil, err
		}
	}
	return there, nil
}

// stranger returns a slot whose holder counts to another limit, and the time that
// its lease may last yet. It ends leases that have expired.
func (s *slots) stranger(ctx context.Context, there map[int]*slot) (time.Duration, *HeldError, error) {
	for _, i := range slices.Sorted(maps.Keys(there)) {
		one := there[i]
		if r := &one.now.rec; !one.now.exists || r.State != Held || r.Limit == s.holder.Limit {
			continue
		}
		left, err := one.mutex.expire(ctx, &one.now, &one.seen)
		if err != nil {
			return 0, nil, err
		}
		if left > 0 && one.now.rec.Limit != s.holder.Limit {
			return left, &HeldError{one.mutex.String(), one.now.rec, s.holder.Limit}, nil
		}
	}
	return 0, nil, nil
}

// take takes any slot that can be had. Without one it returns how long to wait,
// at most, and who has one of them.
func (s *slots) take(ctx context.Context) (*hold, time.Duration, *HeldError, error) {
	if !s.turns.take(ctx, s.clock) {
		return nil, 0, nil, fmt.Errorf("waiting for a slot of %s: %w", s, context.Cause(ctx))
	}
	defer s.turns.end()
	var there map[int]*slot
	err := s.persist(ctx, func() (err error) {
		there, err = s.list(ctx, func(context.Context) error { return nil })
		return err
	})
	if err != nil {
		return nil, 0, nil, err
	}
	if left, busy, err := s.stranger(ctx, there); busy != nil || err != nil {
		return nil, left, busy, err
	}
	shortest, busy := MaxTTL, &HeldError{Lock: s.String()}
	for _, i := range s.order(there) {
		one := s.slot(i)
		h, left, err := one.mutex.take(ctx, &one.now, &one.seen)
		if h != nil || err != nil {
			return h, 0, nil, err
		}
		shortest = min(shortest, left)
		busy = &HeldError{Lock: one.mutex.String(), Record: one.now.rec}
	}
	return nil, shortest, busy, nil
}

// maxFresh is how many slots that are not there yet are tried: more than others
// take meanwhile.
const maxFresh = 64

// order returns the numbers to try: those that are there, and then those that are
// not. Where it begins among each is random, or all would try the same ones.
func (s *slots) order(there map[int]*slot) []int {
	var old, fresh []int
	for i := range s.n {
		if there[i] != nil {
			old = append(old, i)
		} else if len(fresh) < maxFresh {
			fresh = append(fresh, i)
		}
	}
	return append(s.turned(old), s.turned(fresh)...)
}

// turned begins anywhere.
func (s *slots) turned(numbers []int) []int {
	n := len(numbers)
	if n == 0 {
		return nil
	}
	at := int(s.jitter(time.Duration(n))) % n
	return slices.Concat(numbers[at:], numbers[:at])
}

// acquire waits for a slot.
func (s *slots) acquire(ctx context.Context, wait bool) (*hold, error) {
	pauses := s.polls()
	var busy *HeldError
	for {
		h, left, now, err := s.take(ctx)
		switch {
		case h != nil:
			return h, nil
		case err != nil:
			return nil, busy.gaveUp(ctx, err)
		case !wait:
			return nil, now
		}
		busy = now
		if err := s.clock.Sleep(ctx, min(pauses.next(), left)); err != nil {
			return nil, fmt.Errorf("%w: %w", busy, err)
		}
	}
}
