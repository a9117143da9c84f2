package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/cell"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/memory"
)

func put(t *testing.T, s ledger.Store, keys ...ledger.RowKey) {
	t.Helper()
	changes := make([]ledger.Change, len(keys))
	for i, k := range keys {
		changes[i] = ledger.Change{Key: k, Row: &ledger.Row{RowKey: k, Nonce: store.NewNonce(), Want: ledger.Version{Generation: 1}, UpdatedAt: epoch}}
	}
	swap(t, ledger.New(s), changes...)
}

func scan(t *testing.T, s ledger.Store, r ledger.Range) (keys []ledger.RowKey) {
	t.Helper()
	for row, err := range s.Scan(t.Context(), r) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, row.RowKey)
	}
	return keys
}

func TestScanRanges(t *testing.T) {
	s := ledger.NewRows(memory.New())
	var all []ledger.RowKey
	for _, p := range []string{"p", "p\x00", "p\xff", "pp", "q"} {
		for _, b := range []string{"b", "b\xff", "bb"} {
			for _, k := range []string{"a", "a\x00", "a/1", "a/2", "a\xff", "a\xff\x00", "a\xff\xff", "a\xff\xffz", "b", "é", "\xc3", "\xff", "\xff\xff", "\xff\xff\xff", "`\xff\xff\xff\xff\xff\xff\xff\xff\xff"} {
				all = append(all, ledger.RowKey{Pipeline: p, Bucket: b, Key: k})
			}
			all = append(all, ledger.RowKey{Pipeline: p, Bucket: b, Key: "a", VersionID: "v1"}, ledger.RowKey{Pipeline: p, Bucket: b, Key: "a", VersionID: "\xff"})
		}
	}
	put(t, s, all...)
	slices.SortFunc(all, ledger.RowKey.Compare)

	ranges := []ledger.Range{{}, {Pipeline: "p"}, {Pipeline: "p\x00"}, {Pipeline: "p\xff"}, {Pipeline: "zz"}, {Pipeline: "p", Bucket: "b"}, {Pipeline: "p", Bucket: "b\xff"}, {Pipeline: "p", Bucket: "B"}}
	for _, prefix := range []string{"a", "a\x00", "a/", "a/1", "a\xff", "a\xff\xff", "A", "b", "bb", "é", "\xc3", "\xff", "\xff\xff\xff\xff", "%", "\x00"} {
		ranges = append(ranges, ledger.Range{Pipeline: "p", Bucket: "b", Prefix: prefix})
	}
	afters := append([]ledger.RowKey{{}, {Pipeline: "p"}, {Pipeline: "o"}, {Pipeline: "z"}, {Pipeline: "p", Bucket: "b"}, {Pipeline: "p", Bucket: "b", Key: "a", VersionID: "v0"}, {Pipeline: "p", Bucket: "a", Key: "z"}}, all...)
	for _, r := range ranges {
		for _, r.After = range afters {
			var want []ledger.RowKey
			for _, k := range all {
				if r.Match(k) {
					want = append(want, k)
				}
			}
			if diff := cmp.Diff(want, scan(t, s, r)); diff != "" {
				t.Fatalf("%+q (-want +got):\n%s", r, diff)
			}
		}
	}
	names, err := ledger.Pipelines(t.Context(), s)
	if want := []string{"p", "p\x00", "pp", "p\xff", "q"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("pipelines %q, %v, want %q", names, err, want)
	}
}

func TestPipelineRecordIsWrittenOnce(t *testing.T) {
	records := memory.New()
	put(t, ledger.NewRows(records), ledger.RowKey{Pipeline: "p", Bucket: "b", Key: "1"})
	put(t, ledger.NewRows(records), ledger.RowKey{Pipeline: "p", Bucket: "b", Key: "2"})
	if names, err := ledger.Pipelines(t.Context(), ledger.NewRows(records)); err != nil || !slices.Equal(names, []string{"p"}) {
		t.Errorf("%q, %v", names, err)
	}
}

func TestDueRowsAreShared(t *testing.T) {
	s := ledger.NewRows(memory.New())
	s.IntN = rand.New(rand.NewPCG(1, 2)).IntN
	for i := range 20 {
		r := &ledger.Row{RowKey: ledger.RowKey{Pipeline: "p", Bucket: "b", Key: fmt.Sprintf("%02d", i)}, Nonce: store.NewNonce(), UpdatedAt: epoch.Add(time.Duration(i) * time.Second)}
		r.Want.Generation = 1
		swap(t, ledger.New(s), ledger.Change{Key: r.RowKey, Row: r})
	}
	first := map[string]bool{}
	for range 200 {
		rows, err := s.Due(t.Context(), "p", epoch.Add(time.Hour), 4)
		if err != nil || len(rows) != 4 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		for i := range rows[1:] {
			if rows[i].Compare(rows[i+1].RowKey) >= 0 {
				t.Fatalf("%s before %s", rows[i].RowKey, rows[i+1].RowKey)
			}
		}
		first[rows[0].Key] = true
	}
	if len(first) != 17 || first["17"] {
		t.Errorf("the runs begin at %v, want each of the first 17", first)
	}
	if rows, err := s.Due(t.Context(), "p", epoch.Add(4*time.Second), 10); err != nil || len(rows) != 5 {
		t.Errorf("%d rows, %v, want the 5 that are due", len(rows), err)
	}
}

func TestDueIsNeverEarly(t *testing.T) {
	s := ledger.NewRows(memory.New())
	due := epoch.Add(1500 * time.Microsecond)
	for _, r := range []*ledger.Row{
		{RowKey: ledger.RowKey{Pipeline: "p", Bucket: "b", Key: "retry"}, Want: ledger.Version{Generation: 1}, RetryAt: due},
		{RowKey: ledger.RowKey{Pipeline: "p", Bucket: "b", Key: "dead"}, Want: ledger.Version{Generation: 1}, Dead: true},
		{RowKey: ledger.RowKey{Pipeline: "p", Bucket: "b", Key: "settled"}},
	} {
		r.Nonce = store.NewNonce()
		swap(t, ledger.New(s), ledger.Change{Key: r.RowKey, Row: r})
	}
	for at, want := range map[time.Time]int{due.Add(-time.Nanosecond): 0, due.Add(time.Millisecond): 1, epoch.AddDate(1000, 0, 0): 1} {
		if rows, err := s.Due(t.Context(), "p", at, 10); err != nil || len(rows) != want {
			t.Errorf("%d rows are due at %s, %v, want %d", len(rows), at, err, want)
		}
	}
	dead, err := s.Records().Due(t.Context(), store.DueRange{Space: "row/p", Before: epoch.AddDate(9000, 0, 0), Limit: 10})
	if err != nil || len(dead) != 2 {
		t.Errorf("%d records, %v: want the dead row found by its time", len(dead), err)
	}
}

func TestUnreadableRow(t *testing.T) {
	records := memory.New()
	s := ledger.NewRows(records)
	put(t, s, ledger.RowKey{Pipeline: "p", Bucket: "b", Key: "good"})
	key := store.Key{Space: "row/p", Name: store.Join("b", "bad")}
	bad := &store.Record{Key: key, Nonce: store.NewNonce(), Due: epoch, Body: `{"v":"9.0"}`}
	if out, err := records.Swap(t.Context(), []store.Change{{Key: key, Next: bad}}); err != nil || !out[0].Applied {
		t.Fatal(out, err)
	}
	due, err := s.Due(t.Context(), "p", epoch.Add(time.Hour), 10)
	if err != nil || len(due) != 2 || due[0].Unreadable == nil || due[1].Unreadable != nil {
		t.Errorf("%+v, %v", due, err)
	}
	next := &ledger.Row{RowKey: due[0].RowKey, Nonce: store.NewNonce(), UpdatedAt: epoch}
	if out := swap(t, ledger.New(s), ledger.Change{Key: next.RowKey, Row: next}); out[0].Current == nil || out[0].Current.Unreadable == nil {
		t.Errorf("%+v, want a refusal by the unreadable row", out[0])
	}
	if out := swap(t, ledger.New(s), ledger.Change{Key: next.RowKey, Expect: due[0].Nonce, Row: next}); !out[0].Applied {
		t.Errorf("%+v", out[0])
	}
}

type small struct{ store.Store }

func (s small) Traits() store.Traits {
	t := s.Store.Traits()
	t.Body = 400
	return t
}

func TestHistoryIsCutToFitTheBody(t *testing.T) {
	s := ledger.NewRows(small{memory.New()})
	r := aRow(1)
	for i := range ledger.MaxHistory {
		r.History = append(r.History, ledger.Entry{At: epoch, What: "failed", Note: fmt.Sprint(i, strings.Repeat("x", 40))})
	}
	swap(t, ledger.New(s), ledger.Change{Key: r.RowKey, Row: r})
	rows, err := s.Load(t.Context(), []ledger.RowKey{r.RowKey})
	if err != nil || len(rows) != 1 || len(rows[0].History) == 0 || len(rows[0].History) >= ledger.MaxHistory || !strings.HasPrefix(rows[0].History[0].Note, "0") {
		t.Errorf("%+v, %v", rows, err)
	}
	if len(r.History) != ledger.MaxHistory {
		t.Error("the caller's row changed")
	}
}

func TestRegisters(t *testing.T) {
	s := ledger.NewRows(memory.New())
	ctx := t.Context()
	v1, err := s.WriteRegister(ctx, "a/1", "", []byte("one\xff\x00"))
	if err != nil || v1 == "" {
		t.Fatal(v1, err)
	}
	if r, err := s.ReadRegister(ctx, "a/1"); err != nil || r.Version != v1 || string(r.Value) != "one\uFFFD\uFFFD" {
		t.Errorf("%+q, %v", r, err)
	}
	if r, err := s.ReadRegister(ctx, "none"); err != nil || r.Version != "" {
		t.Errorf("%+v, %v", r, err)
	}
	for _, version := range []string{"", "x", strings.Repeat("0", 31), strings.Repeat("1", 32)} {
		if _, err := s.WriteRegister(ctx, "a/1", version, nil); !errors.Is(err, ledger.ErrRegisterChanged) {
			t.Errorf("version %q: %v", version, err)
		}
		if err := s.RemoveRegister(ctx, "a/1", version); !errors.Is(err, ledger.ErrRegisterChanged) {
			t.Errorf("version %q: %v", version, err)
		}
	}
	v2, err := s.WriteRegister(ctx, "a/1", v1, []byte("two"))
	if err != nil || v2 == v1 {
		t.Fatal(v2, err)
	}
	for _, name := range []string{"a/0", "a", "a0", "b", "`~~~~~~~~~~~"} {
		if _, err := s.WriteRegister(ctx, name, "", nil); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for r, err := range s.ListRegisters(ctx, "a/") {
		names = append(names, r.Name)
		if err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(names, []string{"a/0", "a/1"}) {
		t.Errorf("%q", names)
	}
	if err := s.RemoveRegister(ctx, "a/1", v2); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"", "a b", "é", strings.Repeat("n", ledger.MaxRegisterName+1)} {
		if _, err := s.WriteRegister(ctx, name, "", nil); !errors.Is(err, ledger.ErrInvalidRegister) {
			t.Errorf("name %q: %v", name, err)
		}
		if _, err := s.ReadRegister(ctx, name); !errors.Is(err, ledger.ErrInvalidRegister) {
			t.Errorf("name %q: %v", name, err)
		}
	}
	if _, err := s.WriteRegister(ctx, "large", "", make([]byte, ledger.MaxRegister+1)); !errors.Is(err, ledger.ErrInvalidRegister) {
		t.Error(err)
	}
}

type broken struct {
	store.Store
	err error
}

func (b broken) Swap(context.Context, []store.Change) ([]store.Outcome, error) {
	return []store.Outcome{{Err: b.err}}, nil
}

func TestRegisterErrors(t *testing.T) {
	for err, want := range map[error]error{store.ErrUnclear: cell.ErrUnclear, store.ErrThrottled: cell.ErrUnclear, store.ErrRejected: cell.ErrRefused} {
		c := ledger.Cell(ledger.NewRows(broken{memory.New(), err}), "r")
		if _, got := c.Write(t.Context(), "", nil); !errors.Is(got, want) || !errors.Is(got, err) {
			t.Errorf("%v becomes %v", err, got)
		}
	}
}

type fakeTx struct{ records *memory.Store }

func (f fakeTx) Lock(ctx context.Context, k store.Key) (*store.Record, error) {
	found, err := f.records.Load(ctx, []store.Key{k})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

func (f fakeTx) Put(ctx context.Context, r store.Record) error {
	was, err := f.Lock(ctx, r.Key)
	if err != nil {
		return err
	}
	_, err = f.records.Swap(ctx, []store.Change{{Key: r.Key, Expect: was.Nonce, Next: &r}})
	return err
}

type aTask ledger.Completion

func (t *aTask) Completion() (*ledger.Completion, error) { return (*ledger.Completion)(t), nil }

func TestComplete(t *testing.T) {
	p, records := ledger.DefaultPolicy(), memory.New()
	s := ledger.NewRows(records)
	row, a, _ := aRow(1).Claim("w", &p, epoch)
	c := &aTask{Claim: a, Read: ledger.Read{Kind: event.Created, Identity: ledger.Identity{ETag: "e"}}, Now: epoch, Nonce: ledger.Nonce{9}}
	if err := ledger.Complete(t.Context(), fakeTx{records}, c); !errors.Is(err, ledger.ErrNotHeld) {
		t.Errorf("no row: %v", err)
	}
	row.Nonce = ledger.Nonce{2}
	swap(t, ledger.New(s), ledger.Change{Key: row.RowKey, Row: &row})
	if err := ledger.Complete(t.Context(), fakeTx{records}, c); err != nil {
		t.Fatal(err)
	}
	rows, err := s.Load(t.Context(), []ledger.RowKey{row.RowKey})
	if err != nil || !rows[0].Settled() || !rows[0].CommittedBy(&a) || rows[0].Nonce != c.Nonce {
		t.Errorf("%+v, %v", rows, err)
	}
	if err := ledger.Complete(t.Context(), fakeTx{records}, c); !errors.Is(err, ledger.ErrNotHeld) {
		t.Errorf("completed before: %v", err)
	}
}
