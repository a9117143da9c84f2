package worker_test

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/pawlhq/pawl/ledger"
)

// faultyLedger is one worker's way to the ledger. It can be cut and mended, and it can
// make the worker's clock look wrong.
type faultyLedger struct {
	ledger.Store
	recorder *recorder
	// ahead is how far the worker's clock is ahead of the others'. Instead of
	// the clock, which all share, the times in the rows are shifted: what
	// counts is the difference of the two.
	ahead time.Duration

	pauser *pauser // what a pause of the whole worker closes

	mu      sync.Mutex
	cut     chan struct{} // not nil: calls wait until it is closed
	err     error         // not nil: what calls answer
	next    map[string][]func(do func())
	waiting int // calls that wait, and the most there ever were
	most    int
	failed  int           // calls that were answered with err
	sweep   time.Duration // how long a sweep takes
	dues    int           // sweeps answered
}

// slow makes each sweep take so long, unless its context ends.
func (l *faultyLedger) slow(sweep time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweep = sweep
}

// meet makes the next swap for a purpose, as whatChanged names it, meet a fault,
// which may call do when it likes, and after which the swap is answered.
func (l *faultyLedger) meet(what string, fault func(do func())) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == nil {
		l.next = map[string][]func(do func()){}
	}
	l.next[what] = append(l.next[what], fault)
}

// fault returns what a swap meets.
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

// turn makes the worker's clock jump to so far ahead of the others'.
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

// disconnect makes calls wait for an answer.
func (l *faultyLedger) disconnect() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = make(chan struct{})
}

// fail makes calls answer with an error.
func (l *faultyLedger) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

// mend ends what disconnect and fail began. Calls that waited go on.
func (l *faultyLedger) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut != nil {
		close(l.cut)
	}
	l.cut, l.err = nil, nil
}

// reach waits until the ledger can be reached.
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

// shift moves the times of a row that a worker wrote from one clock to another:
// what a clock that is ahead reads as now, it wrote for a later time.
func shift(r *ledger.Row, ahead time.Duration) ledger.Row {
	row := *r
	for _, at := range []*time.Time{&row.Lease.Until, &row.RetryAt, &row.VerifyAt, &row.CreatedAt, &row.UpdatedAt} {
		if !at.IsZero() {
			*at = at.Add(-ahead)
		}
	}
	return row
}

// whatChanged says in a word what a swap is for.
func whatChanged(r *ledger.Row) string {
	if r.Held() && r.UpdatedAt.After(r.History[0].At) {
		return "renewed"
	}
	return r.History[0].What
}

// swept returns how often the worker has swept.
func (l *faultyLedger) swept() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dues
}
