package lock

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawlhq/pawl/bucket"
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
		one = &slot{mutex: &Mutex{object: object{s.world, bucket.Ref{Bucket: s.name, Key: key}}, holder: s.holder}}
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
		if err := s.agrees(one); err != nil {
			return nil, err
		}
	}
	return there, nil
}

// agrees refuses a slot that is held by those who count to another limit.
func (s *slots) agrees(one *slot) error {
	r := &one.now.rec
	if one.now.exists && r.State == Held && r.Limit != s.holder.Limit {
		return fmt.Errorf("%s: %w: it is a slot of a semaphore of %d, and not of %d: all must use the same limit; held by %s",
			one.mutex, ErrConfig, r.Limit, s.holder.Limit, r.holder())
	}
	return nil
}

// take takes any slot that can be had. Without one it returns how long to wait,
// at most, and who has one of them.
func (s *slots) take(ctx context.Context) (*hold, time.Duration, *HeldError, error) {
	if !s.turns.take(ctx, s.clock) {
		return nil, 0, nil, fmt.Errorf("waiting for a slot of %s: %w", s, context.Cause(ctx))
	}
	defer s.turns.end()
	there, err := s.list(ctx, func(context.Context) error { return nil })
	if err != nil {
		return nil, 0, nil, err
	}
	shortest, busy := maxTTL, &HeldError{Ref: bucket.Ref{Bucket: s.name, Key: s.prefix}}
	for _, i := range s.order(there) {
		one := s.slot(i)
		h, left, err := one.mutex.take(ctx, &one.now, &one.seen)
		if h != nil || err != nil {
			return h, 0, nil, err
		}
		shortest = min(shortest, left)
		busy = &HeldError{one.mutex.ref, one.now.rec}
	}
	return nil, shortest, busy, nil
}

// order returns the numbers to try: those that are there, beginning anywhere, and
// then one that is not.
func (s *slots) order(there map[int]*slot) []int {
	var numbers, free []int
	for i := range s.n {
		if there[i] != nil {
			numbers = append(numbers, i)
		} else if len(free) < 8 {
			free = append(free, i)
		}
	}
	if n := len(numbers); n > 0 {
		at := s.random(n)
		numbers = append(append([]int{}, numbers[at:]...), numbers[:at]...)
	}
	if len(free) > 0 {
		numbers = append(numbers, free[s.random(len(free))])
	}
	return numbers
}

// random returns a number in [0, n).
func (s *slots) random(n int) int { return int(s.jitter(time.Duration(n))) % n }

// acquire waits for a slot.
func (s *slots) acquire(ctx context.Context, wait bool) (*hold, error) {
	pauses := backoff{world: s.world, shortest: 100 * time.Millisecond, longest: 2 * time.Second}
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
