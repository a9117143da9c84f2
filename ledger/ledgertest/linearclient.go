package ledgertest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/pawlhq/pawl/internal/registertest"
	"github.com/pawlhq/pawl/ledger"
)

// client swaps and reads rows, and writes down what it was told.
type client struct {
	id      int
	random  *rand.Rand
	store   *Faulty
	swap    swapping
	history *registertest.History

	prefix string
	made   int // values
	keys   []ledger.RowKey
	seen   map[ledger.RowKey][]string // values, the newest last
}

// newClient makes a client of the n-th history.
func newClient(id, n int, seed uint64, s ledger.Store, swap swapping, h *registertest.History) *client {
	c := &client{
		id: id, swap: swap, history: h,
		random: rand.New(rand.NewPCG(seed, uint64(id))),
		prefix: fmt.Sprintf("%d/%d/", n, id), seen: map[ledger.RowKey][]string{},
	}
	c.store = NewFaulty(s, func(int) Fault {
		if c.random.IntN(5) > 0 {
			return None
		}
		return Faults[c.random.IntN(len(Faults))]
	})
	for k := range linearKeys {
		key := ledger.RowKey{Pipeline: fmt.Sprint("history ", n), Bucket: "b", Key: fmt.Sprint("k", k)}
		c.keys, c.seen[key] = append(c.keys, key), []string{""}
	}
	return c
}

// run makes the client's calls. Some are cancelled under way.
func (c *client) run(ctx context.Context) (err error) {
	for i := 0; i < linearCalls && err == nil; i++ {
		var wg sync.WaitGroup
		ctx, cancel := context.WithCancel(ctx)
		if c.random.IntN(10) == 0 {
			wg.Go(cancel)
		}
		if c.random.IntN(8) == 0 {
			c.store.Blind(1)
		}
		switch c.random.IntN(8) {
		case 0, 1:
			_ = c.load(ctx) // which tells nothing if it fails
		case 2:
			if ledger.TraitsOf(c.store).DueLag == 0 {
				c.due(ctx)
			}
		case 3:
			c.scan(ctx)
		default:
			err = c.change(ctx)
		}
		cancel()
		wg.Wait()
		runtime.Gosched() // calls in memory are too short to meet by themselves
	}
	return err
}

// aim is what a client wants of one key: next in the place of expect.
type aim struct {
	key          ledger.RowKey
	expect, next string
}

func (a *aim) change() ledger.Change {
	c := ledger.Change{Key: a.key, Expect: nonceOf(a.expect)}
	if a.next != "" {
		c.Row = rowOf(a.key, a.next)
	}
	return c
}

// aim draws what to do with a key. Mostly it expects what was seen there last,
// and else what was there earlier.
func (c *client) aim(k ledger.RowKey) aim {
	seen := c.seen[k]
	a := aim{key: k, expect: seen[len(seen)-1]}
	if c.random.IntN(5) == 0 {
		a.expect = seen[c.random.IntN(len(seen))]
	}
	if a.expect == "" || c.random.IntN(3) > 0 {
		c.made++
		a.next = c.prefix + fmt.Sprint(c.made)
	}
	return a
}

// change swaps a batch of one or more keys.
func (c *client) change(ctx context.Context) error {
	var aims []aim
	var changes []ledger.Change
	for _, k := range c.random.Perm(len(c.keys))[:1+c.random.IntN(len(c.keys))] {
		a := c.aim(c.keys[k])
		aims, changes = append(aims, a), append(changes, a.change())
	}
	from := c.history.Now()
	out, lost, err := c.swap(ctx, c.store, changes)
	to := c.history.Now()
	for i, a := range aims {
		for range lost[a.key] {
			c.add(a.key, from, to, registertest.Unknown(a.expect, a.next))
		}
		o := &out[i]
		if o.Err == nil {
			c.add(a.key, from, to, a.answered(*o, lost[a.key]))
		}
		switch {
		case o.Err != nil && c.random.IntN(2) == 0, o.Applied:
			c.see(a.key, a.next)
		case o.Err == nil:
			c.see(a.key, valueOf(o.Current))
		}
	}
	return err
}

// answered returns what an answer says. A ledger that has lost sight of a
// removal, and finds no row, takes it for its own.
func (a *aim) answered(o ledger.Outcome, lost int) registertest.Op {
	switch {
	case !o.Applied:
		return registertest.Refused(a.expect, a.next, valueOf(o.Current))
	case a.next == "" && lost > 0:
		return registertest.Gone(a.expect)
	}
	return registertest.Applied(a.expect, a.next)
}

func (c *client) load(ctx context.Context) error {
	from := c.history.Now()
	rows, err := c.store.Load(ctx, c.keys)
	c.read(from, rows, err)
	return err
}

func (c *client) due(ctx context.Context) {
	from := c.history.Now()
	rows, err := c.store.Due(ctx, c.keys[0].Pipeline, t0, len(c.keys))
	c.read(from, rows, err)
}

func (c *client) scan(ctx context.Context) {
	from := c.history.Now()
	var rows []ledger.Row
	for r, err := range c.store.Scan(ctx, ledger.Range{Pipeline: c.keys[0].Pipeline}) {
		if err != nil {
			return
		}
		rows = append(rows, r)
	}
	c.read(from, rows, nil)
}

// read writes down what a read of all keys saw. One that failed saw nothing.
func (c *client) read(from time.Duration, rows []ledger.Row, err error) {
	to := c.history.Now()
	if err != nil {
		return
	}
	found := map[ledger.RowKey]*ledger.Row{}
	for i := range rows {
		found[rows[i].RowKey] = &rows[i]
	}
	for _, k := range c.keys {
		c.add(k, from, to, registertest.Read(valueOf(found[k])))
		c.see(k, valueOf(found[k]))
	}
}

func (c *client) add(k ledger.RowKey, from, to time.Duration, op registertest.Op) {
	c.history.Add(c.id, k.String(), from, to, op)
}

func (c *client) see(k ledger.RowKey, value string) { c.seen[k] = append(c.seen[k], value) }
