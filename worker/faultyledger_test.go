package worker_test

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/pawlhq/pawl/ledger"
)

// faultyLedger is one worker's connection to the ledger. It can fail, and simulate a wrong clock of
// the worker.
type faultyLedger struct {
	ledger.Store
	recorder *recorder
	// ahead is the lead of the worker's clock. All workers share the real clock, so the times in
	// the rows are shifted instead.
	ahead time.Duration

	pauser *pauser // of the whole worker

	mu      sync.Mutex
	cut     chan struct{} // not nil: calls wait until it is closed
	err     error         // not nil: calls return it
	next    map[string][]func(do func())
	waiting int // waiting calls, now and at most
	most    int
	failed  int           // returned err
	sweep   time.Duration // duration of a sweep
	dues    int           // answered sweeps
}

func (l *faultyLedger) slow(sweep time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweep = sweep
}

// meet injects a fault into the next swap with a purpose that whatChanged returns. The fault calls
// do to make the swap.
func (l *faultyLedger) meet(what string, fault func(do func())) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == nil {
		l.next = map[string][]func(do func()){}
	}
	l.next[what] = append(l.next[what], fault)
}

func (l *faultyLedger) fault(changes []ledger.Change) func(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range changes {
		what := whatChanged(changes[i].Row)
		if queue := l.next[what]; len(queue) > 0 {
			l.next[what] = queue[1:]
			return queue[0]
		}
	}
	return func(do func()) { do() }
}

func (l *faultyLedger) turn(ahead time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ahead = ahead
}

func (l *faultyLedger) clock() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ahead
}

func (l *faultyLedger) disconnect() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = make(chan struct{})
}

func (l *faultyLedger) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

func (l *faultyLedger) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut != nil {
		close(l.cut)
	}
	l.cut, l.err = nil, nil
}

func (l *faultyLedger) reach(ctx context.Context) error {
	l.pauser.pass()
	l.mu.Lock()
	cut, err := l.cut, l.err
	if err != nil {
		l.failed++
	} else if cut != nil {
		l.waiting++
		l.most = max(l.most, l.waiting)
	}
	l.mu.Unlock()
	if err != nil || cut == nil {
		return err
	}
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.waiting--
	}()
	select {
	case <-cut:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *faultyLedger) Swap(ctx context.Context, changes []ledger.Change) (outcomes []ledger.Outcome, err error) {
	if err := l.reach(ctx); err != nil {
		return nil, err
	}
	l.fault(changes)(func() { outcomes, err = l.swap(ctx, changes) })
	l.pauser.pass()
	return outcomes, err
}

func (l *faultyLedger) swap(ctx context.Context, changes []ledger.Change) ([]ledger.Outcome, error) {
	ahead := l.clock()
	sent := slices.Clone(changes)
	for i := range sent {
		row := shift(sent[i].Row, -ahead)
		sent[i].Row = &row
	}
	outcomes, err := l.Store.Swap(ctx, sent)
	for i := range outcomes {
		how := "refused"
		if outcomes[i].Applied {
			how = "ok"
		}
		l.recorder.note("swap %s: %s", whatChanged(changes[i].Row), how)
		if c := outcomes[i].Current; c != nil {
			row := shift(c, ahead)
			outcomes[i].Current = &row
		}
	}
	return outcomes, err
}

func (l *faultyLedger) Load(ctx context.Context, keys []ledger.RowKey) ([]ledger.Row, error) {
	if err := l.reach(ctx); err != nil {
		return nil, err
	}
	rows, err := l.Store.Load(ctx, keys)
	l.recorder.note("load")
	return l.shifted(rows), err
}

func (l *faultyLedger) Due(ctx context.Context, pipeline string, before time.Time, limit int) ([]ledger.Row, error) {
	if err := l.reach(ctx); err != nil {
		return nil, err
	}
	l.mu.Lock()
	slow := l.sweep
	l.mu.Unlock()
	select {
	case <-time.After(slow):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	rows, err := l.Store.Due(ctx, pipeline, before.Add(l.clock()), limit)
	l.mu.Lock()
	l.dues++
	l.mu.Unlock()
	return l.shifted(rows), err
}

func (l *faultyLedger) shifted(rows []ledger.Row) []ledger.Row {
	ahead := l.clock()
	for i := range rows {
		rows[i] = shift(&rows[i], ahead)
	}
	return rows
}

func shift(r *ledger.Row, ahead time.Duration) ledger.Row {
	row := *r
	for _, at := range []*time.Time{&row.Lease.Until, &row.RetryAt, &row.VerifyAt, &row.CreatedAt, &row.UpdatedAt} {
		if !at.IsZero() {
			*at = at.Add(-ahead)
		}
	}
	return row
}

func whatChanged(r *ledger.Row) string {
	if r.Held() && r.UpdatedAt.After(r.History[0].At) {
		return "renewed"
	}
	return r.History[0].What
}

func (l *faultyLedger) swept() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dues
}
