package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Ledger is a Store whose swaps always have a clear answer: applied, or refused
// by the row that stands there now.
type Ledger struct {
	Store
	// Unclear, when set, is told of each request of a swap, or of a look at what
	// became of it, that had no clear answer.
	Unclear func(err error)
	// Wait passes the time between two tries. It returns early, with the
	// cause, when ctx ends. A simulation has a time of its own.
	Wait func(ctx context.Context, d time.Duration) error
}

// New returns a ledger over a store.
func New(s Store) *Ledger { return &Ledger{Store: s, Wait: sleep} }

// Swap is the store's, but when the answer is unclear it loads the rows and
// compares. Its own nonce means that the change landed; the expected nonce,
// that it has not, and it is sent again; anything else refuses it. The caller
// who finds its own fence in the refusing row knows that the change had landed
// before somebody superseded it.
//
// A copy whose answer was lost may land later still. Its nonce refuses it, unless
// it is of a first row and that row has been deleted meanwhile: then the old row
// comes back, with a lease that has long expired, and is worked on once more.
//
// It keeps at it until ctx ends, or the store says [ErrUnusable]: nothing can be
// found out from that one any more. Then, and only then, the answer is an error,
// and nothing is known of the changes.
func (l *Ledger) Swap(ctx context.Context, changes []Change) ([]Outcome, error) {
	out, err := l.swapOnce(ctx, changes)
	if err == nil {
		return out, nil
	}
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = 20*time.Millisecond, 5*time.Second
	out = make([]Outcome, len(changes))
	open := make([]int, len(changes)) // changes without an answer
	for i := range open {
		open[i] = i
	}
	for !errors.Is(err, ErrUnusable) {
		if l.Unclear != nil {
			l.Unclear(err)
		}
		if werr := l.Wait(ctx, wait.NextBackOff()); werr != nil {
			return nil, fmt.Errorf("ledger: no answer to %d changes: %w (last: %w)", len(open), werr, err)
		}
		if open, err = l.resolve(ctx, changes, open, out); err == nil {
			return out, nil
		}
	}
	return nil, err
}

func (l *Ledger) swapOnce(ctx context.Context, changes []Change) ([]Outcome, error) {
	out, err := l.Store.Swap(ctx, changes)
	if err == nil && len(out) != len(changes) {
		err = fmt.Errorf("ledger: %d outcomes for %d changes", len(out), len(changes))
	}
	return out, err
}

// resolve answers the open changes it can, sends those again that have not
// landed, and returns the ones still open with the reason. Without one there are
// none.
func (l *Ledger) resolve(ctx context.Context, changes []Change, open []int, out []Outcome) ([]int, error) {
	keys := make([]RowKey, len(open))
	for i, c := range open {
		keys[i] = changes[c].Key
	}
	rows, err := l.Load(ctx, keys)
	if err != nil {
		return open, err
	}
	current := make(map[RowKey]*Row, len(rows))
	for i := range rows {
		current[rows[i].RowKey] = &rows[i]
	}
	var again []int
	for _, i := range open {
		o, landed := classify(&changes[i], current[changes[i].Key])
		if !landed {
			again = append(again, i)
			continue
		}
		out[i] = o
	}
	return l.resend(ctx, changes, again, out)
}

func (l *Ledger) resend(ctx context.Context, changes []Change, again []int, out []Outcome) ([]int, error) {
	if len(again) == 0 {
		return nil, nil
	}
	batch := make([]Change, len(again))
	for i, c := range again {
		batch[i] = changes[c]
	}
	answers, err := l.swapOnce(ctx, batch)
	if err != nil {
		return again, err
	}
	for i, c := range again {
		out[c] = answers[i]
		// The first copy may have landed in between.
		if o, known := classify(&changes[c], answers[i].Current); !answers[i].Applied && known {
			out[c] = o
		}
	}
	return nil, nil
}

// classify compares the row that stands with a change of unknown result. known
// is false where the change has not landed, and may be sent again.
func classify(c *Change, now *Row) (o Outcome, known bool) {
	switch {
	case c.Row == nil && now == nil:
		return Outcome{Applied: true}, true
	case c.Row != nil && now != nil && now.Nonce == c.Row.Nonce:
		return Outcome{Applied: true, Token: now.Token}, true
	case now == nil && c.Expect.IsZero(), now != nil && now.Nonce == c.Expect:
		return Outcome{}, false
	}
	return Outcome{Current: now}, true
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
