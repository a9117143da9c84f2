package pipelinecmd

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/store/memory"
)

// A worker changes each row of a contendedStore just before the swap, meddle times.
type contendedStore struct {
	ledger.Store
	meddle map[string]int
	change func(ledger.Row) ledger.Row
}

func (b *contendedStore) Swap(ctx context.Context, changes []ledger.Change) ([]ledger.Outcome, error) {
	for _, c := range changes {
		if b.meddle[c.Key.Key] == 0 {
			continue
		}
		b.meddle[c.Key.Key]--
		rows, err := b.Load(ctx, []ledger.RowKey{c.Key})
		if err != nil || len(rows) == 0 {
			return nil, fmt.Errorf("load: %w", err)
		}
		next := b.change(rows[0])
		_, _ = rand.Read(next.Nonce[:])
		if _, err := b.Store.Swap(ctx, []ledger.Change{{Key: c.Key, Expect: rows[0].Nonce, Row: &next}}); err != nil {
			return nil, err
		}
	}
	return b.Store.Swap(ctx, changes)
}

func deadRows(t *testing.T, n int) ledger.Store {
	s := ledger.NewRows(memory.New())
	now := time.Now().UTC()
	p := ledger.DefaultPolicy()
	for i := range n {
		r := ledger.Row{RowKey: ledger.RowKey{Pipeline: "p", Bucket: "b", Key: fmt.Sprintf("k%05d", i)}}
		r, _ = r.Observe(&event.Event{Object: r.Object(), Kind: event.Created, Time: now}, false, now)
		r, a, _ := r.Claim("w", &p, now)
		r, _ = r.Fail(&a, &ledger.Ending{}, &ledger.Failure{Message: "no", Permanent: true}, 0, &p, now)
		_, _ = rand.Read(r.Nonce[:])
		if _, err := s.Swap(t.Context(), []ledger.Change{{Key: r.RowKey, Row: &r}}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func states(t *testing.T, s ledger.Store) map[ledger.State]int {
	got := map[ledger.State]int{}
	for r, err := range s.Scan(t.Context(), ledger.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		got[r.State(time.Now())]++
	}
	return got
}

func TestRedriveAllInPages(t *testing.T) {
	const n = redrivePage*2 + 1
	s := deadRows(t, n)
	d := &redriver{ledger: ledger.New(s), selection: &rowSelection{states: []ledger.State{ledger.StateDead}}}
	if err := d.all(t.Context(), &ledgerReader{Store: s}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(redriven{Redriven: n}, d.count); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[ledger.State]int{ledger.StatePending: n}, states(t, s)); diff != "" {
		t.Error(diff)
	}
}

func TestRedriveWhileWorkersRun(t *testing.T) {
	for name, test := range map[string]struct {
		change func(ledger.Row) ledger.Row
		want   redriven
	}{
		"still dead": {func(r ledger.Row) ledger.Row { return r }, redriven{Redriven: 3}},
		"alive":      {func(r ledger.Row) ledger.Row { return r.Redrive(false, time.Now()) }, redriven{Redriven: 1, Skipped: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &contendedStore{Store: deadRows(t, 3), meddle: map[string]int{"k00000": 1, "k00002": 3}, change: test.change}
			d := &redriver{ledger: ledger.New(s), selection: &rowSelection{states: []ledger.State{ledger.StateDead}}}
			if err := d.all(t.Context(), &ledgerReader{Store: s}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, d.count); diff != "" {
				t.Error(diff)
			}
			if got := states(t, s)[ledger.StateDead]; got != 0 {
				t.Errorf("%d are dead", got)
			}
		})
	}
}

func TestRedriveGivesUp(t *testing.T) {
	s := &contendedStore{Store: deadRows(t, 1), meddle: map[string]int{"k00000": 1000}, change: func(r ledger.Row) ledger.Row { return r }}
	d := &redriver{ledger: ledger.New(s), selection: &rowSelection{states: []ledger.State{ledger.StateDead}}}
	if err := d.all(t.Context(), &ledgerReader{Store: s}); err == nil {
		t.Error("no error although the row kept changing")
	}
}

func TestRedriveConfirms(t *testing.T) {
	few, many := &ledgerReader{Store: deadRows(t, confirmAbove)}, &ledgerReader{Store: deadRows(t, confirmAbove+1)}
	for _, test := range []struct {
		name  string
		flags redriveOptions
		v     *ledgerReader
		more  bool
		err   string
		out   string
	}{
		{"few", redriveOptions{}, few, true, "", ""},
		{"many", redriveOptions{}, many, false, "p: 101 dead\nRedrive 101 rows? No terminal to confirm: use --yes to proceed, or --dry-run to count", ""},
		{"yes", redriveOptions{yes: true}, many, true, "", ""},
		{"dry run", redriveOptions{dryRun: true, yes: true}, many, false, "", "p: 101 dead\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			a := &app.App{Streams: app.Streams{Out: &out}}
			more, err := test.flags.ask(t.Context(), a, test.v, &rowSelection{states: []ledger.State{ledger.StateDead}})
			said := ""
			if err != nil {
				said = err.Error()
			}
			if more != test.more || said != test.err || out.String() != test.out {
				t.Errorf("%v, %q, printed %q", more, said, out.String())
			}
		})
	}
}

func TestRedriveReportsSkipped(t *testing.T) {
	d := &redriver{selection: &rowSelection{states: []ledger.State{ledger.StateDead}}}
	changes := d.changes([]ledger.Row{{Unreadable: errors.New("a newer Pawl wrote it")}, {Dead: true}, {}})
	if len(changes) != 1 {
		t.Errorf("redrives %d rows, want 1", len(changes))
	}
	d.count.Redriven = len(changes)
	const want = `redrove 1 row; skipped 1: in other states (--force repeats the effect of settled rows); ` +
		`skipped 1 that this version cannot read (see "pawl explain")`
	if got := d.String(); got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
}
