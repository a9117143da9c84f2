package lock

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
)

// MaxSlots is the maximum number of holders of a semaphore, and of readers of an RWMutex.
const MaxSlots = 1000

type slots struct {
	*env
	name   string
	prefix string
	n      int
	holder Record

	turns turnQueue
	known map[string]*slot // by key; only for the goroutine whose turn it is
}

type slot struct {
	contender
	now observation
}

func (b *Bucket) slots(prefix string, n int, holder Record) *slots {
	return &slots{env: b.env, name: b.name, prefix: prefix, n: n, holder: holder, known: map[string]*slot{}}
}

func (s *slots) String() string { return event.Quote("s3://" + s.name + "/" + s.prefix) }

func (s *slots) slot(i int) *slot {
	key := fmt.Sprintf("%s%04d", s.prefix, i)
	one := s.known[key]
	if one == nil {
		one = &slot{contender: contender{leaseCell: s.object(s.name, key), holder: s.holder}}
		s.known[key] = one
	}
	return one
}

// list returns the existing slots. It calls the function meanwhile before it reads each changed slot.
func (s *slots) list(ctx context.Context, meanwhile func(context.Context) error) (map[int]*slot, error) {
	found, err := s.listing(ctx)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", s, err)
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
		if one.now, err = one.read(ctx); err != nil {
			return nil, err
		}
	}
	return there, nil
}

func (s *slots) listing(ctx context.Context) (found []bucket.Info, err error) {
	ctx, stop := s.clock.Limit(ctx, callTimeout)
	defer stop()
	for info, err := range s.store.List(ctx, s.name, s.prefix, "") {
		if err != nil {
			return nil, err
		}
		found = append(found, info)
	}
	return found, nil
}

// otherLimit returns a holder whose semaphore has another limit. It releases expired leases.
func (s *slots) otherLimit(ctx context.Context, there map[int]*slot) (attempt, error) {
	for _, i := range slices.Sorted(maps.Keys(there)) {
		one := there[i]
		if r := &one.now.rec; !one.now.exists || r.State != Held || r.Limit == s.holder.Limit {
			continue
		}
		left, err := one.expire(ctx, &one.now)
		if err != nil {
			return attempt{}, err
		}
		if left > 0 && one.now.rec.Limit != s.holder.Limit {
			return attempt{retry: left, busy: &HeldError{one.String(), one.now.rec, s.holder.Limit}}, nil
		}
	}
	return attempt{}, nil
}

func (s *slots) tryAcquire(ctx context.Context) (attempt, error) {
	if !s.turns.waitTurn(ctx, s.clock) {
		return attempt{}, fmt.Errorf("wait for a slot of %s: %w", s, context.Cause(ctx))
	}
	defer s.turns.endTurn()
	var there map[int]*slot
	err := s.retryUnavailable(ctx, func() (err error) {
		there, err = s.list(ctx, func(context.Context) error { return nil })
		return err
	})
	if err != nil {
		return attempt{}, err
	}
	if a, err := s.otherLimit(ctx, there); a.busy != nil || err != nil {
		return a, err
	}
	full := attempt{retry: MaxTTL, busy: &HeldError{Lock: s.String()}}
	for _, i := range s.order(there) {
		one := s.slot(i)
		a, err := one.tryAcquire(ctx, &one.now)
		if a.held != nil || err != nil {
			return a, err
		}
		full = attempt{retry: min(full.retry, a.retry), busy: a.busy}
	}
	return full, nil
}

// maxMissingTried exceeds the number of slots that other processes acquire during an attempt.
const maxMissingTried = 64

// order starts each group at a random slot, so that processes do not all try the same ones.
func (s *slots) order(there map[int]*slot) []int {
	var old, fresh []int
	for i := range s.n {
		if there[i] != nil {
			old = append(old, i)
		} else if len(fresh) < maxMissingTried {
			fresh = append(fresh, i)
		}
	}
	return append(s.rotated(old), s.rotated(fresh)...)
}

func (s *slots) rotated(numbers []int) []int {
	n := len(numbers)
	if n == 0 {
		return nil
	}
	at := int(s.jitter(time.Duration(n))) % n
	return slices.Concat(numbers[at:], numbers[:at])
}
