package storetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/store"
)

var txTests = []test{
	{name: "Declared", run: testTxDeclared},
	{name: "Commit", run: testTxCommit, needs: transactions},
	{name: "Rollback", run: testTxRollback, needs: transactions},
	{name: "Increments", run: testTxIncrements, needs: transactions},
}

func testTxDeclared(f *fixture) {
	if f.traits.Transactions != (f.harness.Within != nil) {
		f.Fatalf("the traits declare transactions: %v, and the harness has Within: %v", f.traits.Transactions, f.harness.Within != nil)
	}
}

func put(ctx context.Context, was, next *store.Record) func(store.Tx) error {
	return func(tx store.Tx) error {
		now, err := tx.Lock(ctx, was.Key)
		if err != nil {
			return err
		}
		if !equal(now, was) {
			return fmt.Errorf("locked %s, want %s", show(now), show(was))
		}
		return tx.Put(ctx, *next)
	}
}

func testTxCommit(f *fixture) {
	for _, name := range []string{"k", "\xff\x00", "é"} {
		r := f.record(name)
		f.put(r, f.record(name+"+"))
		next := f.next(r)
		next.Body, next.Due = `{"a":"é"}`, t0.AddDate(1, 0, 0)
		if err := f.harness.Within(f.ctx, f.store, put(f.ctx, r, next)); err != nil {
			f.Fatal(err)
		}
		f.stored(next)
		f.refused(f.swap(update(r, f.next(r)))[0], next)
		never := f.next(next)
		never.Due = time.Time{}
		if err := f.harness.Within(f.ctx, f.store, put(f.ctx, next, never)); err != nil {
			f.Fatal(err)
		}
		f.stored(never)
	}
	err := f.harness.Within(f.ctx, f.store, func(tx store.Tx) error {
		now, err := tx.Lock(f.ctx, key("none"))
		if now != nil {
			err = fmt.Errorf("locked %s, want no record", show(now))
		}
		return err
	})
	if err != nil {
		f.Fatal(err)
	}
	f.absent(key("none"))
}

func testTxRollback(f *fixture) {
	r := f.record("k")
	f.put(r)
	failed := errors.New("failed")
	err := f.harness.Within(f.ctx, f.store, func(tx store.Tx) error {
		return errors.Join(put(f.ctx, r, f.next(r))(tx), failed)
	})
	if !errors.Is(err, failed) {
		f.Fatalf("error %v, want that of the function", err)
	}
	f.stored(r)
	f.applied(f.swap(update(r, f.next(r)))...)
}

func testTxIncrements(f *fixture) {
	const each = 15
	f.put(f.record("k"))
	f.race(func(i int, s store.Store, m *maker) error {
		for range each {
			var err error
			if i < racers/2 {
				err = increment(f.ctx, s, key("k"), m)
			} else {
				_, err = unthrottled(f.ctx, func() ([]store.Outcome, error) {
					return nil, f.harness.Within(f.ctx, s, func(tx store.Tx) error {
						now, err := tx.Lock(f.ctx, key("k"))
						if err != nil {
							return err
						}
						return tx.Put(f.ctx, *m.next(now))
					})
				})
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if got := f.counted("k"); got != racers*each+1 {
		f.Fatalf("counted %d, want %d", got, racers*each+1)
	}
}
