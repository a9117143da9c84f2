package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/virtualtime"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/memory"
	"github.com/pawlhq/pawl/store/storetest"
)

func aRow(n byte) *ledger.Row {
	return &ledger.Row{
		RowKey: ledger.RowKey{Pipeline: "p", Bucket: "b", Key: "k"}, Nonce: ledger.Nonce{n},
		Want: ledger.Version{Generation: uint64(n)}, UpdatedAt: epoch,
	}
}

type faulty struct {
	*ledger.Rows
	lossy *storetest.Faulty
	named int // calls until the pipeline record was written
}

func faultyRows(s store.Store, plan func(call int) storetest.Fault) *faulty {
	f := &faulty{}
	f.lossy = storetest.NewFaulty(s, func(call int) storetest.Fault {
		if f.named == 0 {
			return storetest.None
		}
		return plan(call - f.named)
	})
	f.Rows = ledger.NewRows(f.lossy)
	first := aRow(1)
	first.Key = "first"
	for _, c := range []ledger.Change{{Key: first.RowKey, Row: first}, {Key: first.RowKey, Expect: first.Nonce}} {
		if _, err := f.Swap(context.Background(), []ledger.Change{c}); err != nil {
			panic(err)
		}
	}
	f.named = f.lossy.Calls()
	return f
}

func (f *faulty) Calls() int { return f.lossy.Calls() - f.named }

func swap(t *testing.T, l *ledger.Ledger, changes ...ledger.Change) []ledger.Outcome {
	t.Helper()
	out, err := l.Swap(t.Context(), changes)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestSwapResolvesUnclearAnswers(t *testing.T) {
	l := ledger.New(ledger.NewRows(memory.New()))
	l.Unclear = func(err error) { t.Errorf("unclear: %v", err) }
	r := aRow(1)
	if out := swap(t, l, ledger.Change{Key: r.RowKey, Row: r}); !out[0].Applied {
		t.Errorf("%+v", out)
	}
	if out := swap(t, l, ledger.Change{Key: r.RowKey, Row: aRow(2)}); out[0].Applied || out[0].Current.Nonce != r.Nonce {
		t.Errorf("%+v", out)
	}
}

type mute struct {
	ledger.Store
	calls int
}

func (m *mute) Swap(ctx context.Context, changes []ledger.Change) ([]ledger.Outcome, error) {
	out, err := m.Store.Swap(ctx, changes)
	if m.calls++; m.calls == 1 {
		return out[:0], err
	}
	return out, err
}

func TestSwapRejectsMissingOutcomes(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		l := ledger.New(&mute{Store: ledger.NewRows(memory.New())})
		notices := 0
		l.Unclear = func(error) { notices++ }
		r := aRow(1)
		out := swap(t, l, ledger.Change{Key: r.RowKey, Row: r})
		if !out[0].Applied || notices != 1 {
			t.Errorf("%+v, with %d notices", out, notices)
		}
	})
}

// Waiting workers must not overload a store that is down.
func TestSwapBacksOff(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		lossy := faultyRows(memory.New(), func(int) storetest.Fault { return storetest.Unsent })
		l := ledger.New(lossy)
		ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Minute, errors.New("shutting down"))
		defer cancel()
		r := aRow(1)
		_, err := l.Swap(ctx, []ledger.Change{{Key: r.RowKey, Row: r}})
		if !errors.Is(err, storetest.ErrLost) || !errors.Is(err, context.Cause(ctx)) {
			t.Errorf("error %v, want the cause and the last error", err)
		}
		if n := lossy.Calls(); n < 100 || n > 300 {
			t.Errorf("%d calls in ten minutes", n)
		}
	})
}

type limited struct {
	ledger.Store
	fail int // first call of Swap that fails; 0: none
	n    int
}

func (s *limited) Traits() ledger.Traits { return ledger.Traits{Partial: true, Batch: 2} }

func (s *limited) Swap(ctx context.Context, changes []ledger.Change) ([]ledger.Outcome, error) {
	if s.n++; s.fail > 0 && s.n >= s.fail {
		return nil, storetest.ErrLost
	}
	if len(changes) > 2 {
		return nil, errors.New("too many changes")
	}
	return s.Store.Swap(ctx, changes)
}

func (s *limited) Load(ctx context.Context, keys []ledger.RowKey) ([]ledger.Row, error) {
	if s.fail > 0 && s.n >= s.fail {
		return nil, storetest.ErrLost
	}
	return s.Store.Load(ctx, keys)
}

// A ledger that gives up keeps the answers that it has.
func TestSwapSplitsLargeBatches(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		rows := &limited{Store: ledger.NewRows(memory.New())}
		l := ledger.New(rows)
		var changes []ledger.Change
		for i := range 5 {
			r := aRow(byte(i + 1))
			r.Key = fmt.Sprint(i)
			changes = append(changes, ledger.Change{Key: r.RowKey, Row: r})
		}
		swap(t, l, changes...)
		if rows.n != 3 {
			t.Errorf("%d calls for 5 changes", rows.n)
		}

		rows.n, rows.fail = 0, 2
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		out, err := l.Swap(ctx, changes)
		if err == nil || len(out) != 5 {
			t.Fatalf("%d outcomes, %v", len(out), err)
		}
		for i, o := range out {
			if answered := i < 2; (o.Err == nil) != answered || answered && o.Current == nil {
				t.Errorf("outcome %d: %+v", i, o)
			}
		}
	})
}

// The answer to a claim is lost, and another worker writes the row. The refusing row has the
// caller's fence.
func TestSwapReportsSupersededChange(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		rows := ledger.NewRows(memory.New())
		l := ledger.New(faultyRows(rows.Records(), func(call int) storetest.Fault {
			return map[bool]storetest.Fault{true: storetest.Lost}[call == 0]
		}))
		p := ledger.DefaultPolicy()
		claimed, a, _ := aRow(1).Claim("w1", &p, epoch)
		raised := claimed
		raised.Nonce, raised.Want.Generation = ledger.Nonce{2}, 5
		l.Unclear = func(error) {
			if _, err := rows.Swap(t.Context(), []ledger.Change{{Key: claimed.RowKey, Expect: claimed.Nonce, Row: &raised}}); err != nil {
				t.Error(err)
			}
		}
		out := swap(t, l, ledger.Change{Key: claimed.RowKey, Row: &claimed})
		if out[0].Applied || out[0].Current == nil || out[0].Current.Lease.Fence != a.Fence {
			t.Errorf("%+v, want a refusal by the row that carries fence %d", out[0], a.Fence)
		}
	})
}

func TestSwapLoadsOnlyAmbiguousRows(t *testing.T) {
	for _, plan := range [][]storetest.Fault{
		{storetest.Lost}, {storetest.Unsent}, {storetest.Unsent, storetest.Unsent}, {storetest.Late}, {storetest.Later},
		{storetest.Later, storetest.Unsent}, {storetest.Torn, storetest.Torn, storetest.Torn}, {storetest.Lost, storetest.Lost},
	} {
		for blind := range 2 {
			virtualtime.Test(t, func(t *testing.T) {
				started := 0 // first call of the plan
				lossy := faultyRows(memory.New(), func(call int) storetest.Fault {
					if call-started < len(plan) {
						return plan[call-started]
					}
					return storetest.None
				})
				l := ledger.New(lossy)
				r1, r2 := aRow(1), aRow(2)
				for i, c := range []ledger.Change{
					{Key: r1.RowKey, Row: r1}, {Key: r1.RowKey, Expect: r1.Nonce, Row: r2}, {Key: r1.RowKey, Expect: r2.Nonce},
				} {
					started = lossy.Calls()
					lossy.lossy.Blind(blind)
					if out := swap(t, l, c); !out[0].Applied || out[0].Current != nil {
						t.Errorf("plan %v, change %d: %+v", plan, i, out[0])
					}
				}
				started = lossy.Calls()
				if out := swap(t, l, ledger.Change{Key: r1.RowKey, Expect: r1.Nonce, Row: r2}); out[0].Applied || out[0].Current != nil {
					t.Errorf("plan %v: an update of no row: %+v", plan, out[0])
				}
			})
		}
	}
}

func TestSwapResolvesBatches(t *testing.T) {
	for _, plan := range [][]storetest.Fault{
		{storetest.Unsent}, {storetest.Torn}, {storetest.Torn, storetest.Torn}, {storetest.Torn, storetest.Unsent}, {storetest.Lost},
	} {
		virtualtime.Test(t, func(t *testing.T) {
			rows := ledger.NewRows(memory.New())
			changes := make([]ledger.Change, 6)
			for i := range changes {
				r := aRow(1)
				r.Key = string(rune('a' + i))
				changes[i] = ledger.Change{Key: r.RowKey, Row: r}
			}
			// another worker has already written the last row but one
			other := *changes[4].Row
			other.Nonce = ledger.Nonce{9}
			swap(t, ledger.New(rows), ledger.Change{Key: other.RowKey, Row: &other})
			lossy := faultyRows(rows.Records(), func(call int) storetest.Fault {
				if call < len(plan) {
					return plan[call]
				}
				return storetest.None
			})
			for i, o := range swap(t, ledger.New(lossy), changes...) {
				if o.Applied != (i != 4) || !o.Applied && (o.Current == nil || o.Current.Nonce != other.Nonce) {
					t.Errorf("plan %v, change %d: %+v", plan, i, o)
				}
			}
			stored, err := rows.Load(t.Context(), []ledger.RowKey{changes[0].Key, changes[3].Key, changes[5].Key})
			if err != nil || len(stored) != 3 {
				t.Errorf("plan %v: %d rows, %v", plan, len(stored), err)
			}
		})
	}
}

func TestSwapStopsWhenResolved(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		rows := ledger.NewRows(memory.New())
		started := 0
		lossy := faultyRows(rows.Records(), func(call int) storetest.Fault {
			return map[bool]storetest.Fault{true: storetest.Unsent}[call == started]
		})
		update := ledger.Change{Key: aRow(1).RowKey, Expect: ledger.Nonce{1}, Row: aRow(2)}
		if out := swap(t, ledger.New(lossy), update); out[0].Applied || out[0].Current != nil || lossy.Calls() != 1 {
			t.Errorf("update of a missing row: %+v after %d calls", out[0], lossy.Calls())
		}
		swap(t, ledger.New(rows), ledger.Change{Key: aRow(1).RowKey, Row: aRow(1)})
		insert := ledger.Change{Key: aRow(1).RowKey, Row: aRow(2)}
		started = lossy.Calls()
		if out := swap(t, ledger.New(lossy), insert); out[0].Applied || out[0].Current == nil || lossy.Calls() != 2 {
			t.Errorf("insert over an existing row: %+v after %d calls", out[0], lossy.Calls())
		}
	})
}

func TestSwapReportsRejectedChanges(t *testing.T) {
	good, bad := aRow(1), aRow(2)
	bad.Key, bad.RetryAt = "bad", time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC)
	l := ledger.New(ledger.NewRows(memory.New()))
	l.Unclear = func(err error) { t.Errorf("unclear: %v", err) }
	out, err := l.Swap(t.Context(), []ledger.Change{{Key: bad.RowKey, Row: bad}, {Key: good.RowKey, Row: good}})
	if !errors.Is(err, ledger.ErrRejected) || !strings.Contains(out[0].Err.Error(), "s3://b/bad") || !out[1].Applied {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestSwapRetriesThrottledChanges(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		lossy := faultyRows(memory.New(), func(call int) storetest.Fault {
			return map[bool]storetest.Fault{true: storetest.Throttled}[call < 2]
		})
		lossy.lossy.Blind(1)
		r := aRow(1)
		if out := swap(t, ledger.New(lossy), ledger.Change{Key: r.RowKey, Row: r}); !out[0].Applied || lossy.Calls() != 3 {
			t.Errorf("%+v after %d calls", out, lossy.Calls())
		}
		if _, err := lossy.Load(t.Context(), []ledger.RowKey{r.RowKey}); !errors.Is(err, storetest.ErrLost) {
			t.Error("the row was loaded again")
		}
	})
}

// shifting refuses the first swap, and returns current as the row that refused it.
type shifting struct {
	ledger.Store
	current *ledger.Row
}

func (s *shifting) Swap(ctx context.Context, changes []ledger.Change) ([]ledger.Outcome, error) {
	if s.current == nil {
		return s.Store.Swap(ctx, changes)
	}
	out := []ledger.Outcome{{Current: s.current}}
	s.current = nil
	return out, nil
}

func TestSwapRetriesIfRowChangedTwice(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		rows := ledger.NewRows(memory.New())
		swap(t, ledger.New(rows), ledger.Change{Key: aRow(1).RowKey, Row: aRow(1)})
		l := ledger.New(&shifting{rows, aRow(1)})
		if out := swap(t, l, ledger.Change{Key: aRow(1).RowKey, Expect: ledger.Nonce{1}, Row: aRow(2)}); !out[0].Applied {
			t.Errorf("%+v", out[0])
		}
	})
}
