package files

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/store"
)

const (
	// Each of the maxBatch items has up to 3 changes, and the usage has one.
	maxBatch = (store.MaxApply - 1) / 3
	// maxSenders limits the idle entities whose usage is cached.
	maxSenders = 4096
)

// sender sends the changes of one entity that affect its usage or delete idempotency keys. Without
// it, concurrent callers would conflict on the usage record. One caller at a time sends batches
// until the outcome of its own item is known.
type sender struct {
	entity string

	// Guarded by Index.mu.
	queue  []*item
	active bool // a caller is sending, or about to send

	// Only the sending caller uses these fields.
	used     Usage
	unknown  jsontext.Value // unknown members of its record
	nonce    store.Nonce
	known    bool // used and nonce are current as far as this process knows
	unsent   bool // no batch was sent since the usage was loaded
	refusals int  // consecutive refusals of the usage
}

// send returns an ambiguous error if ctx ends first.
func (x *Index) send(ctx context.Context, entity string, it *item) error {
	s := x.enqueue(entity, it)
	for {
		x.mu.Lock()
		done, leads := it.done, it.leader
		x.mu.Unlock()
		var stopped error
		switch {
		case done:
			return it.err
		case leads:
			stopped = x.lead(ctx, s, it)
		default:
			stopped = x.await(ctx, it.wake, 0)
		}
		if stopped != nil {
			return x.withdraw(s, it, stopped)
		}
	}
}

func (x *Index) enqueue(entity string, it *item) *sender {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.senders[entity]
	if s == nil {
		x.evictIdle()
		s = &sender{entity: entity}
		x.senders[entity] = s
	}
	s.queue = append(s.queue, it)
	if !s.active {
		s.active, it.leader = true, true
	}
	return s
}

func (x *Index) evictIdle() {
	if len(x.senders) < maxSenders {
		return
	}
	for entity, s := range x.senders {
		if !s.active {
			delete(x.senders, entity)
			return
		}
	}
}

// An item may land after withdraw if it is already in a batch.
func (x *Index) withdraw(s *sender, it *item, cause error) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	s.queue = slices.DeleteFunc(s.queue, func(o *item) bool { return o == it })
	if it.leader {
		s.handOver()
	}
	if it.done {
		return it.err
	}
	it.done = true
	return wrapUnclear(it.id, cause)
}

// The caller of handOver holds x.mu.
func (s *sender) handOver() {
	if s.active = len(s.queue) > 0; s.active {
		next := s.queue[0]
		next.leader = true
		next.notify()
	}
}

func (it *item) notify() {
	select {
	case it.wake <- struct{}{}:
	default:
	}
}

func (x *Index) lead(ctx context.Context, s *sender, own *item) error {
	for {
		x.mu.Lock()
		if own.done {
			s.handOver()
			own.leader = false
			x.mu.Unlock()
			return nil
		}
		x.mu.Unlock()
		if err := x.step(ctx, s); err != nil {
			return err
		}
	}
}

// step returns an error only if ctx has ended.
func (x *Index) step(ctx context.Context, s *sender) error {
	if !s.known {
		if err := x.loadUsage(ctx, s); err != nil {
			x.answer(x.nextBatch(s, true), err)
			return nil
		}
	}
	batch := x.nextBatch(s, false)
	if len(batch) == 0 { // the first item exceeds the limit
		s.known = x.refuseFirst(s)
		return nil
	}
	return x.sendBatch(ctx, s, batch)
}

func (x *Index) loadUsage(ctx context.Context, s *sender) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	x.mu.Lock()
	for _, it := range s.queue {
		it.queuedAtLoad = true
	}
	x.mu.Unlock()
	r, err := x.load(ctx, quotaKey(s.entity))
	if err != nil {
		return err
	}
	return s.setUsage(r)
}

func (s *sender) setUsage(r *store.Record) (err error) {
	s.used, s.unknown, s.nonce = Usage{}, nil, store.Nonce{}
	if r != nil {
		s.nonce = r.Nonce
		s.used, s.unknown, err = decodeQuota(r)
	}
	s.known = err == nil
	s.unsent = s.known
	return err
}

// nextBatch takes items that have no record in common. Together they fit into the limit, unless
// unfit is true.
func (x *Index) nextBatch(s *sender, unfit bool) (batch []*item) {
	x.mu.Lock()
	defer x.mu.Unlock()
	used, keys := s.used, map[store.Key]bool{}
	rest := s.queue[:0:0]
	for i, it := range s.queue {
		if len(batch) == maxBatch || len(batch) > 0 && (it.solo || batch[0].solo) {
			rest = append(rest, s.queue[i:]...)
			break
		}
		if !unfit && it.exceeds(used) != nil || slices.ContainsFunc(it.changes, func(c store.Change) bool { return keys[c.Key] }) {
			rest = append(rest, it)
			if len(batch) == 0 {
				rest = s.queue // the first item must be refused or sent before the others
				break
			}
			continue
		}
		for i := range it.changes {
			keys[it.changes[i].Key] = true
		}
		used = used.add(it.addedUsage)
		batch = append(batch, it)
	}
	s.queue = rest
	return batch
}

func (it *item) exceeds(used Usage) error {
	switch {
	case it.addedUsage.Bytes > 0 && used.Bytes+it.addedUsage.Bytes > it.limit.Bytes:
		return ErrQuota
	case it.addedUsage.Open > 0 && used.Open+it.addedUsage.Open > it.limit.Open:
		return ErrOpenUploads
	}
	return nil
}

// refuseFirst refuses the first item, which exceeds the limit. It returns false if the usage must
// be loaded again first.
func (x *Index) refuseFirst(s *sender) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(s.queue) == 0 {
		return true
	}
	first := s.queue[0]
	err := first.exceeds(s.used)
	if err == nil { // the item's caller has withdrawn it
		return true
	}
	if !s.unsent || !first.queuedAtLoad {
		return false
	}
	first.finish(err)
	s.queue = s.queue[1:]
	return true
}

// The caller of finish holds x.mu.
func (it *item) finish(err error) {
	if !it.done {
		it.done, it.err = true, err
	}
	it.notify()
}

// answer marks the error of a new file as ambiguous unless the store rejected the batch.
func (x *Index) answer(items []*item, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, it := range items {
		e := err
		if e != nil && it.creates && !errors.Is(e, store.ErrRejected) {
			e = wrapUnclear(it.id, e)
		}
		it.finish(e)
	}
}

func (x *Index) requeue(s *sender, items []*item) {
	x.mu.Lock()
	defer x.mu.Unlock()
	items = slices.DeleteFunc(items, func(it *item) bool { return it.done })
	s.queue = append(items, s.queue...)
}

func (x *Index) jitter(ctx context.Context, tries int) error {
	most := retryInterval << min(tries, 3) / 8
	return x.sleep(ctx, most/4+rand.N(most))
}
