package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pawlhq/pawl/store"
)

var scanTests = []test{
	{name: "Ranges", run: testScanRanges},
	{name: "Many", run: testScanMany},
	{name: "Break", run: testScanBreak},
	{name: "WhileWriting", run: testScanWhileWriting, needs: promptScan},
	{name: "Nested", run: testScanNested},
	{name: "Cancelled", run: testScanCancelled},
}

func promptScan(f *fixture) bool { return f.traits.ScanLag == 0 }

func scan(ctx context.Context, s store.Store, r store.Range) (records []store.Record, err error) {
	for next, err := range s.Scan(ctx, r) {
		if err != nil {
			return nil, fmt.Errorf("Scan(%+v): %w", r, err)
		}
		records = append(records, next)
	}
	return records, nil
}

func (f *fixture) scans(r store.Range, want ...*store.Record) {
	f.Helper()
	f.eventually(f.traits.ScanLag, func() string {
		got, err := scan(f.ctx, f.store, r)
		if err != nil {
			f.Fatal(err)
		}
		if complaint := compare(got, want); complaint != "" {
			return fmt.Sprintf("Scan(%+v): %s", r, complaint)
		}
		return ""
	})
}

func within(records []*store.Record, r store.Range) (in []*store.Record) {
	for _, record := range records {
		if record.Space == r.Space && record.Name > r.After && (r.Before == "" || record.Name < r.Before) {
			in = append(in, record)
		}
	}
	if r.Newest {
		slices.Reverse(in)
	}
	if r.Limit > 0 && len(in) > r.Limit {
		in = in[:r.Limit]
	}
	return in
}

func (f *fixture) grid() []*store.Record {
	f.Helper()
	var records []*store.Record
	for _, s := range []string{"p", "p\x00", "p\xff", "pp", "q"} {
		for _, name := range []string{
			"\x00", "a", "a\x00", "a\x00\x01v", "a\x00\xff", "a/1", "a/2", "a\xff", "a\xff\x00", "a\xff\xff", "a\xff\xffz", "b", "é", "\xc3", "\xff", "\xff\xff", "\xff\xff\xff",
		} {
			r := f.record(name)
			r.Space = s
			records = append(records, r)
		}
	}
	slices.SortFunc(records, byName)
	f.put(records...)
	return records
}

func testScanRanges(f *fixture) {
	f.scans(store.Range{Space: "p"})
	records := f.grid()
	bounds := []string{"", "\x00", "a", "a\x00", "a0", "a/2" + "\x00", store.End("a\xff\xff"), "b", "zz", "\xff\xff", "\xff\xff\xff\xff"}
	for _, s := range []string{"p", "p\xff"} {
		for _, after := range bounds {
			for _, before := range bounds {
				for _, limit := range []int{0, 1, 3, 100} {
					for _, newest := range []bool{false, true} {
						r := store.Range{Space: s, After: after, Before: before, Newest: newest, Limit: limit}
						f.scans(r, within(records, r)...)
					}
				}
			}
		}
	}
	for _, s := range []string{"p\x00", "pp", "q", "P", "none"} {
		f.scans(store.Range{Space: s}, within(records, store.Range{Space: s})...)
		f.scans(store.Range{Space: s, Newest: true}, within(records, store.Range{Space: s, Newest: true})...)
	}
}

func testScanMany(f *fixture) {
	const n = 2600
	records := make([]*store.Record, n)
	for i := range records {
		records[i] = f.record(fmt.Sprintf("in/%d", i))
	}
	f.put(records...)
	outside := []*store.Record{f.record("im"), f.record("in."), f.record("in0")}
	f.put(outside...)
	slices.SortFunc(records, byName)
	for _, newest := range []bool{false, true} {
		for _, limit := range []int{0, 255, 256, 257, 1000, 2048, n, n + 1} {
			r := store.Range{Space: space, After: "in/", Before: store.End("in/"), Newest: newest, Limit: limit}
			f.scans(r, within(records, r)...)
		}
	}
}

// A loop that ends early must leave no lock behind.
func testScanBreak(f *fixture) {
	records := f.grid()
	for range 100 {
		for _, err := range f.store.Scan(f.ctx, store.Range{Space: "p"}) {
			if err != nil {
				f.Fatal(err)
			}
			break
		}
	}
	f.scans(store.Range{Space: "p"}, within(records, store.Range{Space: "p"})...)
	f.put(f.record("one more"))
}

func testScanWhileWriting(f *fixture) {
	const n = 1200
	for _, newest := range []bool{false, true} {
		records := make([]*store.Record, n)
		for i := range records {
			records[i] = f.record(fmt.Sprintf("%04d", i))
			records[i].Space = fmt.Sprint("newest ", newest)
		}
		f.put(records...)
		if newest {
			slices.Reverse(records)
		}
		met := 0
		for r, err := range f.store.Scan(f.ctx, store.Range{Space: records[0].Space, Newest: newest}) {
			if err != nil {
				f.Fatal(err)
			}
			if len(r.Name) > 4 {
				continue // written below
			}
			if met == n || r.Key != records[met].Key {
				f.Fatalf("met %s after %d records", show(&r), met)
			}
			if met%100 == 0 {
				f.writeAround(&r, records[met+1:])
			}
			met++
		}
		if met != n {
			f.Fatalf("met %d records of %d", met, n)
		}
	}
}

func (f *fixture) writeAround(met *store.Record, ahead []*store.Record) {
	f.Helper()
	last := len(ahead) - 1
	far := f.next(ahead[last])
	near, there := f.record(met.Name+"+"), f.record(far.Name+"+"+met.Name)
	near.Space, there.Space = met.Space, met.Space
	f.applied(f.swap(update(met, f.next(met)), update(ahead[last], far), insert(near), insert(there))...)
	ahead[last] = far
}

func testScanNested(f *fixture) {
	records := within(f.grid(), store.Range{Space: "p"})
	f.scans(store.Range{Space: "p"}, records...)
	depth := 0
	var descend func(after string)
	descend = func(after string) {
		for r, err := range f.store.Scan(f.ctx, store.Range{Space: "p", After: after}) {
			if err != nil {
				f.Fatal(err)
			}
			if !equal(&r, records[depth]) {
				f.Fatalf("%s in scan %d", show(&r), depth)
			}
			depth++
			descend(r.Name)
			f.stored(&r)
			return
		}
	}
	descend("")
	if depth != len(records) {
		f.Fatalf("%d scans, want %d", depth, len(records))
	}
}

// Without an error, the caller would treat the remaining records as absent.
func testScanCancelled(f *fixture) {
	var records []*store.Record
	for i := range 1200 {
		records = append(records, f.record(fmt.Sprint(i)))
	}
	f.put(records...)
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	var last error
	n := 0
	for _, err := range f.store.Scan(ctx, store.Range{Space: space}) {
		if last != nil {
			f.Fatal("the scan continued after an error")
		}
		if last = err; err == nil {
			n++
		}
		cancel()
	}
	if n < len(records) && !errors.Is(last, context.Canceled) {
		f.Fatalf("%d records of %d and error %v, want context.Canceled", n, len(records), last)
	}
}
