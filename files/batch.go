package files

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/pawlhq/pawl/store"
)

// sendBatch answers items with known outcomes and requeues the others. It returns only errors of
// ctx.
func (x *Index) sendBatch(ctx context.Context, s *sender, batch []*item) error {
	usage, err := s.usageChange(batch)
	if err != nil {
		x.answer(batch, err)
		return nil
	}
	changes := []store.Change{usage}
	for _, it := range batch {
		changes = append(changes, it.changes...)
	}
	out, err := x.applyDetached(ctx, changes)
	s.unsent = false
	switch {
	case err == nil && out[0].Applied:
		s.nonce, s.refusals = usage.Next.Nonce, 0
		for _, it := range batch {
			s.used = s.used.add(it.addedUsage)
		}
		x.answer(batch, nil)
	case err == nil:
		return x.handleRefusal(ctx, s, batch, out)
	case errors.Is(err, store.ErrThrottled):
		x.requeue(s, batch)
		return x.jitter(ctx, 3)
	case errors.Is(err, store.ErrRejected):
		x.retrySolo(s, batch, err)
	default:
		x.resolveUnclear(ctx, s, batch, err)
	}
	return nil
}

func (u Usage) add(o Usage) Usage { return Usage{Bytes: u.Bytes + o.Bytes, Open: u.Open + o.Open} }

// usageChange always writes a new nonce and never deletes the usage, so that an earlier batch in
// flight cannot land.
func (s *sender) usageChange(batch []*item) (c store.Change, err error) {
	used := s.used
	for _, it := range batch {
		used = used.add(it.addedUsage)
	}
	next := &store.Record{Key: quotaKey(s.entity)}
	if _, err = rand.Read(next.Nonce[:]); err == nil {
		next.Body, err = encode(quotaBody{Format, used.Bytes, used.Open, s.unknown}, "the usage of", s.entity)
	}
	return store.Change{Key: next.Key, Expect: s.nonce, Next: next}, err
}

func (x *Index) handleRefusal(ctx context.Context, s *sender, batch []*item, out []store.Outcome) error {
	late := out[0].Refused
	if late {
		if err := s.setUsage(out[0].Current); err != nil {
			x.answer(batch, err)
			return nil
		}
		s.unsent = false
	}
	out = out[1:]
	var rest []*item
	for _, it := range batch {
		if again, err := x.retryOrOutcome(ctx, it, out[:len(it.changes)]); again {
			rest = append(rest, it)
		} else {
			x.answer([]*item{it}, err)
		}
		out = out[len(it.changes):]
	}
	x.requeue(s, rest)
	if !late {
		return nil
	}
	if s.refusals++; s.refusals > 1 {
		return x.jitter(ctx, s.refusals)
	}
	return nil
}

// retryOrOutcome reports whether an item of a refused batch must be sent again. Otherwise err is
// the item's result.
func (x *Index) retryOrOutcome(ctx context.Context, it *item, out []store.Outcome) (again bool, err error) {
	for i := range out {
		if out[i].Refused && (i != it.key || i == 0 || it.drops) {
			return false, x.outcome(ctx, it, out)
		}
	}
	if it.key == 0 || !out[it.key].Refused {
		return true, nil
	}
	return x.mayTakeKey(ctx, it, out[it.key].Current)
}

func (x *Index) mayTakeKey(ctx context.Context, it *item, current *store.Record) (again bool, err error) {
	key := &it.changes[it.key]
	if current == nil {
		key.Expect = store.Nonce{}
		return true, nil
	}
	id, err := decodeKey(current)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	f, err := x.Load(ctx, id)
	switch {
	case errors.Is(err, ErrNotFound), err == nil && f.State == Expired:
		key.Expect = current.Nonce
		return true, nil
	case err == nil:
		it.keyHolder, err = f, errKeyTaken
	}
	return false, err
}

// retrySolo isolates the item that the store rejects.
func (x *Index) retrySolo(s *sender, batch []*item, err error) {
	if len(batch) == 1 {
		x.answer(batch, err)
		return
	}
	x.mu.Lock()
	for _, it := range batch {
		it.solo = true
	}
	x.mu.Unlock()
	x.requeue(s, batch)
}

// resolveUnclear reads the rows once to learn whether the batch has landed. Only this batch can
// create a row with the ID of a new file. If the batch has not landed, it may still land later.
// Therefore the call that creates a file fails. Calls that change a file get ErrConflict, so that
// they read the current row and try again.
func (x *Index) resolveUnclear(ctx context.Context, s *sender, batch []*item, cause error) {
	s.known = false
	x.warn(ctx, "the index gave an ambiguous answer to a batch", "entity", s.entity, "changes", len(batch), "file", batch[0].id, "error", cause)
	keys := make([]store.Key, len(batch))
	for i, it := range batch {
		keys[i] = fileKey(it.id)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	found, err := x.store.Load(ctx, keys)
	if err != nil {
		x.answer(batch, fmt.Errorf("%w: %w (load after it: %w)", ErrUnclear, cause, err))
		return
	}
	nonces, landed := map[string]store.Nonce{}, false
	for i := range found {
		nonces[found[i].Name] = found[i].Nonce
	}
	for _, it := range batch {
		now, exists := nonces[it.id]
		landed = landed || exists && (it.creates || now == it.nonce)
	}
	for _, it := range batch {
		_, exists := nonces[it.id]
		switch {
		case landed, it.drops && !exists:
			x.answer([]*item{it}, nil)
		case it.creates:
			x.answer([]*item{it}, cause)
		default:
			x.answer([]*item{it}, ErrConflict)
		}
	}
}
