package storetest_test

import (
	"context"
	"sync"

	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/memory"
)

type past struct {
	mu    sync.Mutex
	swaps int
	loads int
	old   map[store.Key]store.Record
	keys  []store.Key
}

func (p *past) age(ctx context.Context, s *memory.Store, changes []store.Change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range changes {
		p.keys = append(p.keys, c.Key)
	}
	if p.swaps++; p.swaps%4 == 0 {
		p.old = map[store.Key]store.Record{}
		found, _ := s.Load(ctx, p.keys) // a cancelled call keeps nothing
		for _, r := range found {
			p.old[r.Key] = r
		}
	}
}

func loadOld() *driver {
	p := &past{}
	return &driver{
		swap: func(ctx context.Context, s *memory.Store, changes []store.Change) ([]store.Outcome, error) {
			p.age(ctx, s, changes)
			return s.Swap(ctx, changes)
		},
		load: func(ctx context.Context, s *memory.Store, keys []store.Key) (found []store.Record, err error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.loads++; p.loads%4 > 0 {
				return s.Load(ctx, keys)
			}
			for _, k := range keys {
				if r, ok := p.old[k]; ok {
					found = append(found, r)
				}
			}
			return found, nil
		},
	}
}

func compareOld() *driver {
	p := &past{}
	return &driver{swap: func(ctx context.Context, s *memory.Store, changes []store.Change) ([]store.Outcome, error) {
		p.age(ctx, s, changes)
		var out []store.Outcome
		for i := range changes {
			swap := (*memory.Store).Swap
			p.mu.Lock()
			if r, ok := p.old[changes[i].Key]; ok && r.Nonce == changes[i].Expect {
				swap = func(s *memory.Store, ctx context.Context, c []store.Change) ([]store.Outcome, error) {
					return ignoreNonce(ctx, s, c)
				}
			}
			p.mu.Unlock()
			one, err := swap(s, ctx, changes[i:i+1])
			if err != nil {
				return nil, err
			}
			out = append(out, one...)
		}
		return out, nil
	}}
}
