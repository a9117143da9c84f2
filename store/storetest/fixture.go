package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/pawlhq/pawl/store"
)

var t0 = time.Date(2026, time.March, 1, 12, 0, 0, 123e6, time.UTC)

const space = "row/p"

type fixture struct {
	*testing.T
	maker
	harness *Harness
	ctx     context.Context
	open    Open
	store   store.Store
	traits  store.Traits
}

func newFixture(t *testing.T, h *Harness) *fixture {
	f := &fixture{T: t, maker: newMaker(t.Name()), harness: h, ctx: t.Context(), open: h.New(t)}
	f.store = f.handle()
	f.traits = f.store.Traits()
	return f
}

func (f *fixture) handle() store.Store {
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

func (f *fixture) handles() [2]store.Store {
	if !f.harness.Shared {
		return [2]store.Store{f.store, f.store}
	}
	return [2]store.Store{f.store, f.handle()}
}

// eventually repeats check until it returns "", or fails the test after the lag.
func (f *fixture) eventually(lag time.Duration, check func() string) {
	f.Helper()
	const checks = 20
	for n := 0; ; n++ {
		complaint := check()
		switch {
		case complaint == "":
			return
		case n == checks || lag == 0:
			f.Fatal(complaint)
		case f.harness.Pass != nil:
			f.harness.Pass(f.ctx, lag/checks+1)
		default:
			select {
			case <-time.After(lag/checks + 1):
			case <-f.ctx.Done():
			}
		}
	}
}

func unthrottled(ctx context.Context, call func() ([]store.Outcome, error)) ([]store.Outcome, error) {
	for {
		out, err := call()
		if !errors.Is(err, store.ErrThrottled) || ctx.Err() != nil {
			return out, err
		}
		runtime.Gosched()
	}
}

func send(ctx context.Context, s store.Store, changes []store.Change) ([]store.Outcome, error) {
	out := make([]store.Outcome, 0, len(changes))
	for batch := range slices.Chunk(changes, s.Traits().Batch) {
		got, err := unthrottled(ctx, func() ([]store.Outcome, error) { return s.Swap(ctx, batch) })
		if err != nil {
			return nil, err
		}
		if len(got) != len(batch) {
			return nil, fmt.Errorf("Swap: %d outcomes for %d changes", len(got), len(batch))
		}
		for i := range got {
			if !errors.Is(got[i].Err, store.ErrThrottled) {
				continue
			}
			one, err := send(ctx, s, batch[i:i+1])
			if err != nil {
				return nil, err
			}
			got[i] = one[0]
		}
		out = append(out, got...)
	}
	return out, nil
}

func (f *fixture) swap(changes ...store.Change) []store.Outcome {
	f.Helper()
	out, err := send(f.ctx, f.store, changes)
	if err != nil {
		f.Fatalf("Swap: %v", err)
	}
	return out
}

func (f *fixture) apply(changes ...store.Change) []store.Outcome {
	f.Helper()
	out, err := unthrottled(f.ctx, func() ([]store.Outcome, error) { return f.store.Apply(f.ctx, changes) })
	if err != nil || len(out) != len(changes) {
		f.Fatalf("Apply: %d outcomes for %d changes, error %v", len(out), len(changes), err)
	}
	return out
}

func (f *fixture) put(records ...*store.Record) {
	f.Helper()
	changes := make([]store.Change, len(records))
	for i, r := range records {
		changes[i] = insert(r)
	}
	f.applied(f.swap(changes...)...)
}

func (f *fixture) applied(out ...store.Outcome) {
	f.Helper()
	for i, o := range out {
		if o != (store.Outcome{Applied: true}) {
			f.Fatalf("outcome %d: want applied, got %s", i, describe(&o))
		}
	}
}

// A nil by stands for a missing record.
func (f *fixture) refused(o store.Outcome, by *store.Record) {
	f.Helper()
	if o.Err != nil || o.Applied || !o.Refused || !equal(o.Current, by) {
		f.Fatalf("want refused by %s, got %s", show(by), describe(&o))
	}
}

func describe(o *store.Outcome) string {
	switch {
	case o.Err != nil:
		return "no answer: " + o.Err.Error()
	case o.Applied || !o.Refused:
		return fmt.Sprintf("applied %v, refused %v, current %s", o.Applied, o.Refused, show(o.Current))
	}
	return "refused by " + show(o.Current)
}

func load(ctx context.Context, s store.Store, keys ...store.Key) (map[store.Key]*store.Record, error) {
	records, err := s.Load(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("Load: %w", err)
	}
	found := make(map[store.Key]*store.Record, len(records))
	for i := range records {
		k := records[i].Key
		if found[k] != nil || !slices.Contains(keys, k) {
			return nil, fmt.Errorf("Load: unexpected record %s", show(&records[i]))
		}
		found[k] = &records[i]
	}
	return found, nil
}

func (f *fixture) stored(records ...*store.Record) {
	f.Helper()
	f.storedIn(f.store, records...)
}

func (f *fixture) storedIn(s store.Store, records ...*store.Record) {
	f.Helper()
	keys := make([]store.Key, len(records))
	for i, r := range records {
		keys[i] = r.Key
	}
	found, err := load(f.ctx, s, keys...)
	if err != nil {
		f.Fatal(err)
	}
	for _, r := range records {
		if !equal(found[r.Key], r) {
			f.Fatalf("stored: %s\nwant: %s", show(found[r.Key]), show(r))
		}
	}
}

func (f *fixture) absent(keys ...store.Key) {
	f.Helper()
	found, err := load(f.ctx, f.store, keys...)
	if err != nil || len(found) > 0 {
		f.Fatalf("found %v, error %v, want no record", found, err)
	}
}

func compare(got []store.Record, want []*store.Record) string {
	for i := range min(len(got), len(want)) {
		if !equal(&got[i], want[i]) {
			return fmt.Sprintf("record %d is %s, want %s", i, show(&got[i]), show(want[i]))
		}
	}
	if len(got) != len(want) {
		return fmt.Sprintf("%d records, want %d", len(got), len(want))
	}
	return ""
}

func equal(a, b *store.Record) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Key == b.Key && a.Nonce == b.Nonce && a.Body == b.Body && a.Due.Equal(b.Due) && a.Due.Location() == b.Due.Location()
}

func show(r *store.Record) string {
	if r == nil {
		return "no record"
	}
	short := func(s string) string {
		if len(s) > 60 {
			return fmt.Sprintf("%.40q… (%d bytes)", s, len(s))
		}
		return strconv.Quote(s)
	}
	return fmt.Sprintf("{%s %s, nonce %x, due %v, body %s}", short(r.Space), short(r.Name), r.Nonce, r.Due, short(r.Body))
}

// maker generates the same records and nonces in every run of a test.
type maker struct{ random *rand.ChaCha8 }

func newMaker(seed string) maker {
	var b [32]byte
	copy(b[:], seed)
	return maker{rand.NewChaCha8(b)}
}

func (m *maker) nonce() (n store.Nonce) {
	_, _ = m.random.Read(n[:]) // never fails
	return n
}

func (m *maker) record(name string) *store.Record {
	return &store.Record{Key: key(name), Nonce: m.nonce(), Due: t0, Body: "1"}
}

func (m *maker) next(r *store.Record) *store.Record {
	n := *r
	n.Nonce, n.Body = m.nonce(), strconv.Itoa(count(r)+1)
	return &n
}

func count(r *store.Record) int {
	n, _ := strconv.Atoi(r.Body) // other bodies count as 0
	return n
}

func key(name string) store.Key { return store.Key{Space: space, Name: name} }

func insert(r *store.Record) store.Change { return store.Change{Key: r.Key, Next: r} }

func update(old, r *store.Record) store.Change {
	return store.Change{Key: r.Key, Expect: old.Nonce, Next: r}
}

func remove(old *store.Record) store.Change { return store.Change{Key: old.Key, Expect: old.Nonce} }

func byName(a, b *store.Record) int { return a.Compare(b.Key) }

func byDue(a, b *store.Record) int {
	return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.Name, b.Name))
}
