package ledgertest

import (
	"context"
	"math/rand/v2"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// t0 is when everything happens: UTC and whole microseconds, which is what
// every store keeps.
var t0 = time.Date(2026, time.March, 1, 12, 0, 0, 123456000, time.UTC)

// fixture is one test with a store of its own.
type fixture struct {
	*testing.T
	maker
	harness *Harness
	ctx     context.Context
	open    Open
	store   ledger.Store
	traits  ledger.Traits
}

func newFixture(t *testing.T, h *Harness) *fixture {
	f := &fixture{T: t, maker: newMaker(t.Name()), harness: h, ctx: t.Context(), open: h.New(t)}
	f.store = f.handle()
	f.traits = ledger.TraitsOf(bare(f.store))
	return f
}

// handle opens one more handle, which is closed when the test ends. What a store
// leaves without an answer, or takes in parts, a ledger over it makes whole.
func (f *fixture) handle() ledger.Store {
	f.Helper()
	s := f.opened()
	if t := ledger.TraitsOf(s); t.Partial || t.Batch < ledger.DefaultBatch {
		l := ledger.New(s)
		l.Wait = func(ctx context.Context, _ time.Duration) error {
			runtime.Gosched()
			return context.Cause(ctx)
		}
		return l
	}
	return s
}

// opened is a handle as the harness opens it.
func (f *fixture) opened() ledger.Store {
	f.Helper()
	s, err := f.open()
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := s.Close(); err != nil {
			f.Errorf("Close: %v", err)
		}
	})
	return s
}

// bare is the store of a handle.
func bare(s ledger.Store) ledger.Store {
	if l, ok := s.(*ledger.Ledger); ok {
		return l.Store
	}
	return s
}

// eventually calls check until it says nothing, for as long as Due may lag.
func (f *fixture) eventually(check func() string) {
	f.Helper()
	const looks = 20
	for look := 0; ; look++ {
		complaint := check()
		switch {
		case complaint == "":
			return
		case look == looks || f.traits.DueLag == 0:
			f.Fatal(complaint)
		}
		f.pass(f.traits.DueLag/looks + 1)
	}
}

func (f *fixture) pass(d time.Duration) {
	if f.harness.Pass != nil {
		f.harness.Pass(f.ctx, d)
		return
	}
	select {
	case <-time.After(d):
	case <-f.ctx.Done():
	}
}

// handles returns two handles, or twice the same one where there can be no two.
func (f *fixture) handles() [2]ledger.Store {
	if !f.harness.Shared {
		return [2]ledger.Store{f.store, f.store}
	}
	return [2]ledger.Store{f.store, f.handle()}
}

// swap fails the test if the store has no clear answer.
func (f *fixture) swap(changes ...ledger.Change) []ledger.Outcome {
	f.Helper()
	out, err := f.store.Swap(f.ctx, changes)
	if err != nil {
		f.Fatalf("Swap: %v", err)
	}
	if len(out) != len(changes) {
		f.Fatalf("Swap: %d outcomes for %d changes", len(out), len(changes))
	}
	return out
}

// put swaps rows in as new, and fails the test if one is refused.
func (f *fixture) put(rows ...*ledger.Row) {
	f.Helper()
	changes := make([]ledger.Change, len(rows))
	for i, r := range rows {
		changes[i] = insert(r)
	}
	f.applied(f.swap(changes...)...)
}

// applied fails the test unless every outcome is a yes.
func (f *fixture) applied(out ...ledger.Outcome) {
	f.Helper()
	for i, o := range out {
		if !o.Applied || o.Current != nil || o.Err != nil {
			f.Fatalf("outcome %d: want applied, got %s", i, describe(&o))
		}
	}
}

// refused fails the test unless the outcome is a no, by the row given; nil: by
// none.
func (f *fixture) refused(o ledger.Outcome, by *ledger.Row) {
	f.Helper()
	switch {
	case o.Err != nil:
		f.Fatalf("no answer, want refused: %v", o.Err)
	case o.Applied:
		f.Fatalf("applied, want refused")
	case by == nil && o.Current != nil:
		f.Fatalf("refused by row %s, want by none", o.Current.RowKey)
	case by != nil && o.Current == nil:
		f.Fatalf("refused by no row, want by %s", by.RowKey)
	case by != nil:
		f.same(o.Current, by)
	}
}

func describe(o *ledger.Outcome) string {
	switch {
	case o.Err != nil:
		return "no answer: " + o.Err.Error()
	case o.Applied:
		return "applied"
	case o.Current == nil:
		return "refused by no row"
	}
	return "refused by row " + o.Current.RowKey.String()
}

// load returns the stored row, or nil.
func (f *fixture) load(k ledger.RowKey) *ledger.Row {
	f.Helper()
	return f.loadFrom(f.store, k)
}

func (f *fixture) loadFrom(s ledger.Store, k ledger.RowKey) *ledger.Row {
	f.Helper()
	rows, err := s.Load(f.ctx, []ledger.RowKey{k})
	if err != nil {
		f.Fatalf("Load: %v", err)
	}
	if len(rows) > 1 {
		f.Fatalf("Load: %d rows for one key", len(rows))
	}
	if len(rows) == 0 {
		return nil
	}
	return &rows[0]
}

// stored fails the test unless the row stored under k is want; nil: none.
func (f *fixture) stored(k ledger.RowKey, want *ledger.Row) {
	f.Helper()
	switch got := f.load(k); {
	case got == nil && want == nil:
	case got == nil:
		f.Fatalf("no row %s", k)
	case want == nil:
		f.Fatalf("row %s is there, want none", k)
	default:
		f.same(got, want)
	}
}

func (f *fixture) same(got, want *ledger.Row) {
	f.Helper()
	if d := diff(want, got); d != "" {
		f.Fatalf("row %s (-want +got):\n%s", want.RowKey, d)
	}
}

// diff compares all of two rows but the backend's token. A time must be the
// same instant, in UTC.
func diff(want, got any) string {
	if reflect.DeepEqual(want, got) {
		return "" // cmp is slow where there is nothing to say
	}
	return cmp.Diff(want, got,
		cmpopts.IgnoreFields(ledger.Row{}, "Token"),
		cmpopts.EquateEmpty(),
		cmp.Comparer(func(a, b event.Sequencer) bool { return a.Raw() == b.Raw() && a.CompareSameKey(b) == 0 }),
		cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) && a.Location() == b.Location() }),
	)
}

// maker makes rows and nonces, the same in every run of one test.
type maker struct{ random *rand.ChaCha8 }

func newMaker(seed string) maker {
	var b [32]byte
	copy(b[:], seed)
	return maker{rand.NewChaCha8(b)}
}

func (m *maker) nonce() (n ledger.Nonce) {
	_, _ = m.random.Read(n[:]) // never fails
	return n
}

// row makes a small row that is due at t0.
func (m *maker) row(k ledger.RowKey) *ledger.Row {
	return &ledger.Row{
		RowKey: k, Nonce: m.nonce(),
		Want:      ledger.Version{Generation: 1, Kind: event.Created},
		CreatedAt: t0, UpdatedAt: t0,
	}
}

// next makes the row that follows r: one Generation on, with a fresh nonce.
func (m *maker) next(r *ledger.Row) *ledger.Row {
	n := *r
	n.Nonce = m.nonce()
	n.Want.Generation++
	return &n
}

// key names a row by its object key alone.
func key(k string) ledger.RowKey { return ledger.RowKey{Pipeline: "p", Bucket: "b", Key: k} }

func insert(r *ledger.Row) ledger.Change { return ledger.Change{Key: r.RowKey, Row: r} }

func update(old, r *ledger.Row) ledger.Change {
	return ledger.Change{Key: r.RowKey, Expect: old.Nonce, Row: r}
}

func remove(old *ledger.Row) ledger.Change {
	return ledger.Change{Key: old.RowKey, Expect: old.Nonce}
}
