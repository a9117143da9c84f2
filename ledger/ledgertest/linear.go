package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/pawlhq/pawl/internal/registertest"
	"github.com/pawlhq/pawl/ledger"
)

// Each key of a store is a register: a swap replaces what it expects, or is
// refused by what stands there, and a read sees what stands there. Here several
// clients do all of it at once on few keys, answers get lost, and still their
// calls must have an order in which they make sense.
//
// The changes of a batch are calls of their own. Load, Due and Scan are all
// reads, of each key that they could have returned.
var linearTests = []test{
	{name: "Store", run: func(f *fixture) { f.linear(ofStore) }},
	{name: "Ledger", run: func(f *fixture) { f.linear(ofLedger) }},
}

// So many histories, with so many calls of each client.
const (
	linearHistories = 16
	linearClients   = 4
	linearCalls     = 16
	linearKeys      = 3
)

// A swapping is how clients swap. lost counts, for each change, the requests that
// were sent and have no answer. An outcome with an error is no answer.
type swapping func(ctx context.Context, s *Faulty, changes []ledger.Change) (out []ledger.Outcome, lost counts, err error)

// counts are of changes, by key.
type counts map[ledger.RowKey]int

// add counts the changes that have no answer.
func (c counts) add(changes []ledger.Change, out []ledger.Outcome, err error) {
	for i := range changes {
		if err != nil || out[i].Err != nil {
			c[changes[i].Key]++
		}
	}
}

// ofStore takes the store's word: where it is an error, nothing is known.
func ofStore(ctx context.Context, s *Faulty, changes []ledger.Change) ([]ledger.Outcome, counts, error) {
	lost := counts{}
	out, err := s.Swap(ctx, changes)
	lost.add(changes, out, err)
	if err != nil {
		out = make([]ledger.Outcome, len(changes))
		for i := range out {
			out[i].Err = err
		}
	}
	return out, lost, nil
}

// ofLedger takes a ledger's word, which is always clear. A request whose answer
// it missed may still land behind it: that of an insert does when the row has
// been removed again.
func ofLedger(ctx context.Context, s *Faulty, changes []ledger.Change) (out []ledger.Outcome, lost counts, err error) {
	c := &counting{s, counts{}}
	l := ledger.New(c)
	l.Wait = func(context.Context, time.Duration) error {
		runtime.Gosched()
		return nil
	}
	out, err = l.Swap(context.WithoutCancel(ctx), changes)
	return out, c.lost, err
}

// counting counts the requests whose answers were lost.
type counting struct {
	*Faulty
	lost counts
}

func (c *counting) Swap(ctx context.Context, changes []ledger.Change) ([]ledger.Outcome, error) {
	out, err := c.Faulty.Swap(ctx, changes)
	c.lost.add(changes, out, err)
	return out, err
}

// linear plays histories, each with a seed and keys of its own, and looks at
// what is left in the end through every handle.
func (f *fixture) linear(swap swapping) {
	first, handles := registertest.Seed(f), f.handles()
	for n := range linearHistories {
		seed, history := first+uint64(n), registertest.New()
		client := func(id int) *client {
			return newClient(id, n, seed, bare(handles[id%len(handles)]), swap, history)
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
			f.Fatalf("%v\n%s", err, registertest.Repeat(f, seed))
		}
	}
}

// rowOf makes the row that is a register's value. Its nonce is the value's name,
// and its body has it too.
func rowOf(k ledger.RowKey, value string) *ledger.Row {
	return &ledger.Row{
		RowKey: k, Nonce: nonceOf(value), LastError: value,
		Want:      ledger.Version{Generation: 1},
		CreatedAt: t0, UpdatedAt: t0, // which makes it due
	}
}

func nonceOf(value string) (n ledger.Nonce) {
	copy(n[:], value)
	return n
}

// valueOf names the value that a row is; nil: nothing.
func valueOf(r *ledger.Row) string {
	switch {
	case r == nil:
		return ""
	case r.Nonce != nonceOf(r.LastError):
		return fmt.Sprintf("the nonce %q with the row of %s", r.Nonce[:], r.LastError)
	}
	return r.LastError
}
