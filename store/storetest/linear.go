package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/pawlhq/pawl/internal/linearizable"
	"github.com/pawlhq/pawl/store"
)

// Each key is a register, and the calls on it must be linearizable.
var linearTests = []test{
	{name: "Swap", run: func(f *fixture) { f.linear(false) }},
	{name: "SwapAndApply", run: func(f *fixture) { f.linear(true) }, needs: applies},
}

const (
	linearHistories = 16
	linearClients   = 4
	linearCalls     = 16 // calls of each client
	linearKeys      = 3
)

func (f *fixture) linear(apply bool) {
	first, handles := linearizable.Seed(f), f.handles()
	for n := range linearHistories {
		seed, history := first+uint64(n), linearizable.New()
		client := func(id int) *client {
			return newClient(id, n, seed, handles[id%len(handles)], apply, history)
		}
		errs := make([]error, linearClients)
		var wg sync.WaitGroup
		for id := range errs {
			wg.Go(func() { errs[id] = client(id).run(f.ctx) })
		}
		wg.Wait()
		for i := range handles {
			errs = append(errs, client(linearClients+i).load(f.ctx))
		}
		if err := errors.Join(append(errs, history.Check())...); err != nil {
			f.Fatalf("%v\n%s", err, linearizable.Repeat(f, seed))
		}
	}
}

type client struct {
	id      int
	random  *rand.Rand
	store   *Faulty
	apply   bool // also calls Apply
	history *linearizable.History

	prefix string
	made   int
	keys   []store.Key
	seen   map[store.Key][]string // values, newest last
}

func newClient(id, n int, seed uint64, s store.Store, apply bool, h *linearizable.History) *client {
	c := &client{
		id: id, apply: apply, history: h,
		random: rand.New(rand.NewPCG(seed, uint64(id))),
		prefix: fmt.Sprintf("%d/%d/", n, id), seen: map[store.Key][]string{},
	}
	c.store = NewFaulty(s, func(int) Fault {
		if c.random.IntN(5) > 0 {
			return None
		}
		return Faults[c.random.IntN(len(Faults))]
	})
	for i := range linearKeys {
		k := store.Key{Space: fmt.Sprint("history ", n), Name: fmt.Sprint("k", i)}
		c.keys, c.seen[k] = append(c.keys, k), []string{""}
	}
	return c
}

func (c *client) run(ctx context.Context) (err error) {
	traits := c.store.Traits()
	for i := 0; i < linearCalls && err == nil; i++ {
		var wg sync.WaitGroup
		ctx, cancel := context.WithCancel(ctx)
		if c.random.IntN(10) == 0 {
			wg.Go(cancel)
		}
		switch n := c.random.IntN(8); {
		case n < 2:
			_ = c.load(ctx) // a failed read returned nothing
		case n == 2 && traits.DueLag == 0:
			c.due(ctx)
		case n == 3 && traits.ScanLag == 0:
			c.scan(ctx)
		default:
			err = c.change(ctx)
		}
		cancel()
		wg.Wait()
		runtime.Gosched() // calls in memory are too short to overlap otherwise
	}
	return err
}

type aim struct{ expect, next string }

func recordOf(k store.Key, value string) *store.Record {
	return &store.Record{Key: k, Nonce: nonceOf(value), Due: t0, Body: value}
}

func nonceOf(value string) (n store.Nonce) {
	copy(n[:], value)
	return n
}

func valueOf(r *store.Record) string {
	switch {
	case r == nil:
		return ""
	case r.Nonce != nonceOf(r.Body):
		return fmt.Sprintf("the nonce %q with the body of %s", r.Nonce[:], r.Body)
	}
	return r.Body
}

func (c *client) aim(k store.Key) aim {
	seen := c.seen[k]
	a := aim{expect: seen[len(seen)-1]}
	if c.random.IntN(5) == 0 {
		a.expect = seen[c.random.IntN(len(seen))]
	}
	if a.expect == "" || c.random.IntN(3) > 0 {
		c.made++
		a.next = c.prefix + fmt.Sprint(c.made)
	}
	return a
}

func (c *client) change(ctx context.Context) error {
	n := 1 + c.random.IntN(len(c.keys))
	call, most := c.store.Swap, c.store.Traits().Batch
	if c.apply && c.random.IntN(2) == 0 {
		call, most = c.store.Apply, c.store.Traits().Apply
	}
	var aims []aim
	var changes []store.Change
	for _, k := range c.random.Perm(len(c.keys))[:min(n, most)] {
		key := c.keys[k]
		a := c.aim(key)
		ch := store.Change{Key: key, Expect: nonceOf(a.expect)}
		if a.next != "" {
			ch.Next = recordOf(key, a.next)
		}
		aims, changes = append(aims, a), append(changes, ch)
	}
	from := c.history.Now()
	out, err := call(ctx, changes)
	to := c.history.Now()
	if err == nil && len(out) != len(changes) {
		return fmt.Errorf("%d outcomes for %d changes", len(out), len(changes))
	}
	for i, a := range aims {
		o := store.Outcome{Err: err}
		if err == nil {
			o = out[i]
		}
		c.learn(changes[i].Key, a, &o, from, to)
	}
	return nil
}

func (c *client) learn(k store.Key, a aim, o *store.Outcome, from, to time.Duration) {
	switch {
	case errors.Is(o.Err, store.ErrThrottled): // the change did not land
	case o.Err != nil:
		c.add(k, from, to, linearizable.Unknown(a.expect, a.next))
		if c.random.IntN(2) == 0 {
			c.see(k, a.next)
		}
	case o.Applied:
		c.add(k, from, to, linearizable.Applied(a.expect, a.next))
		c.see(k, a.next)
	case o.Refused:
		c.add(k, from, to, linearizable.Refused(a.expect, a.next, valueOf(o.Current)))
		c.see(k, valueOf(o.Current))
	}
}

func (c *client) load(ctx context.Context) error {
	from := c.history.Now()
	records, err := c.store.Load(ctx, c.keys)
	c.read(from, records, err)
	return err
}

func (c *client) due(ctx context.Context) {
	from := c.history.Now()
	records, err := c.store.Due(ctx, store.DueRange{Space: c.keys[0].Space, Before: t0, Limit: len(c.keys)})
	c.read(from, records, err)
}

func (c *client) scan(ctx context.Context) {
	from := c.history.Now()
	records, err := scan(ctx, c.store, store.Range{Space: c.keys[0].Space, Newest: c.random.IntN(2) == 0})
	c.read(from, records, err)
}

// A failed read has no result.
func (c *client) read(from time.Duration, records []store.Record, err error) {
	to := c.history.Now()
	if err != nil {
		return
	}
	found := map[store.Key]*store.Record{}
	for i := range records {
		found[records[i].Key] = &records[i]
	}
	for _, k := range c.keys {
		c.add(k, from, to, linearizable.Read(valueOf(found[k])))
		c.see(k, valueOf(found[k]))
	}
}

func (c *client) add(k store.Key, from, to time.Duration, op linearizable.Op) {
	c.history.Add(c.id, k.Space+" "+k.Name, from, to, op)
}

func (c *client) see(k store.Key, value string) { c.seen[k] = append(c.seen[k], value) }
