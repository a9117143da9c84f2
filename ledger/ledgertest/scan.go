package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pawlhq/pawl/ledger"
)

var scanTests = []test{
	{name: "Ranges", run: testScanRanges},
	{name: "After", run: testScanAfter},
	{name: "Break", run: testScanBreak},
	{name: "Many", run: testScanMany},
	{name: "WhileWriting", run: testScanWhileWriting},
	{name: "Nested", run: testScanNested, unless: func(t *ledger.Traits) bool { return t.ScanUnordered }},
	{name: "Cancelled", run: testScanCancelled},
	{name: "Pipelines", run: testPipelines},
}

// scan collects a range in key order, and fails the test unless it came in it,
// where the store has one.
func (f *fixture) scan(r ledger.Range) []ledger.Row {
	f.Helper()
	var rows []ledger.Row
	for row, err := range f.store.Scan(f.ctx, r) {
		if err != nil {
			f.Fatalf("Scan(%+v): %v", r, err)
		}
		if n := len(rows); n > 0 && rows[n-1].Compare(row.RowKey) >= 0 && !f.traits.ScanUnordered {
			f.Fatalf("Scan(%+v): %s came after %s", r, row.RowKey, rows[n-1].RowKey)
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b ledger.Row) int { return a.Compare(b.RowKey) })
	return rows
}

// grid stores rows at every crossing of names that prefixes confuse easily.
func (f *fixture) grid() []*ledger.Row {
	f.Helper()
	var rows []*ledger.Row
	for _, p := range []string{"p", "p\x00", "p\xff", "pp", "q"} {
		for _, b := range []string{"b", "b\xff", "bb"} {
			for _, k := range []string{"a", "a\x00", "a/1", "a/2", "a\xff", "a\xff\x00", "a\xff\xff", "a\xff\xffz", "b", "é", "\xc3", "\xff", "\xff\xff", "\xff\xff\xff"} {
				rows = append(rows, f.row(ledger.RowKey{Pipeline: p, Bucket: b, Key: k}))
			}
			rows = append(rows, f.row(ledger.RowKey{Pipeline: p, Bucket: b, Key: "a", VersionID: "v1"}))
			rows = append(rows, f.row(ledger.RowKey{Pipeline: p, Bucket: b, Key: "a", VersionID: "\xff"}))
		}
	}
	f.put(rows...)
	return rows
}

func inRange(rows []*ledger.Row, r ledger.Range) (in []*ledger.Row) {
	for _, row := range rows {
		if r.Match(row.RowKey) {
			in = append(in, row)
		}
	}
	return in
}

func testScanRanges(f *fixture) {
	f.wantRows(f.scan(ledger.Range{}))
	rows := f.grid()
	ranges := []ledger.Range{
		{}, {Pipeline: "p"}, {Pipeline: "p\x00"}, {Pipeline: "p\xff"}, {Pipeline: "P"}, {Pipeline: "zz"},
		{Pipeline: "p", Bucket: "b"}, {Pipeline: "p", Bucket: "b\xff"}, {Pipeline: "p", Bucket: "B"},
	}
	for _, prefix := range []string{
		"a", "a\x00", "a/", "a/1", "a\xff", "a\xff\xff", "a\xff\xffz", "A", "b", "bb", "é", "\xc3", "\xff", "\xff\xff",
		"\xff\xff\xff", "\xff\xff\xff\xff", "%", "_", "\x00",
	} {
		ranges = append(ranges, ledger.Range{Pipeline: "p", Bucket: "b", Prefix: prefix})
	}
	for _, r := range ranges {
		f.wantRows(f.scan(r), inRange(rows, r)...)
	}
}

// After starts behind any key, be it there or not, in the range or not.
func testScanAfter(f *fixture) {
	rows := f.grid()
	ranges := []ledger.Range{{}, {Pipeline: "p"}, {Pipeline: "p", Bucket: "b"}, {Pipeline: "p", Bucket: "b", Prefix: "a"}, {Pipeline: "p", Bucket: "b", Prefix: "a\xff"}}
	for _, r := range ranges {
		for _, after := range []ledger.RowKey{
			{Pipeline: "p", Bucket: "b", Key: "a"}, {Pipeline: "p", Bucket: "b", Key: "a", VersionID: "v0"},
			{Pipeline: "p", Bucket: "b", Key: "a", VersionID: "\xff"}, {Pipeline: "p", Bucket: "b", Key: "a\xff"},
			{Pipeline: "p", Bucket: "b", Key: "\xff\xff\xff"}, {Pipeline: "p", Bucket: "b"}, {Pipeline: "p"},
			{Pipeline: "o"}, {Pipeline: "p", Bucket: "a", Key: "z"}, {Pipeline: "p\xff"}, {Pipeline: "z"},
		} {
			r.After = after
			f.wantRows(f.scan(r), inRange(rows, r)...)
		}
		if r.After = (ledger.RowKey{}); !f.traits.ScanUnordered {
			f.wantRows(f.pages(r, 7), inRange(rows, r)...)
		}
	}
}

// pages reads a range as a list with a "next" button does.
func (f *fixture) pages(r ledger.Range, size int) (all []ledger.Row) {
	f.Helper()
	for {
		n := 0
		for row, err := range f.store.Scan(f.ctx, r) {
			if err != nil {
				f.Fatal(err)
			}
			all, r.After = append(all, row), row.RowKey
			if n++; n == size {
				break
			}
		}
		if n < size {
			return all
		}
	}
}

// A loop that ends early leaves nothing behind that others wait for.
func testScanBreak(f *fixture) {
	rows := f.grid()
	for range 100 {
		for _, err := range f.store.Scan(f.ctx, ledger.Range{}) {
			if err != nil {
				f.Fatal(err)
			}
			break
		}
	}
	f.wantRows(f.scan(ledger.Range{}), rows...)
	f.put(f.row(key("one more")))
}

// What a pipeline is called is known without a look at all rows.
func testPipelines(f *fixture) {
	names, err := ledger.Pipelines(f.ctx, f.store)
	if err != nil || len(names) != 0 {
		f.Fatalf("an empty ledger has the pipelines %q, %v", names, err)
	}
	f.grid()
	names, err = ledger.Pipelines(f.ctx, f.store)
	if want := []string{"p", "p\x00", "pp", "p\xff", "q"}; err != nil || !slices.Equal(names, want) {
		f.Fatalf("pipelines %q, %v, want %q", names, err, want)
	}
}

func testScanMany(f *fixture) {
	const n = 2600
	rows := make([]*ledger.Row, n)
	for i := range rows {
		rows[i] = f.row(key(fmt.Sprintf("in/%d", i)))
	}
	for batch := range slices.Chunk(rows, 500) {
		f.put(batch...)
	}
	f.put(f.row(key("im")), f.row(key("in.")), f.row(key("in0")))
	f.wantRows(f.scan(ledger.Range{Pipeline: "p", Bucket: "b", Prefix: "in/"}), rows...)
	if !f.traits.ScanUnordered {
		f.wantRows(f.pages(ledger.Range{Pipeline: "p", Bucket: "b", Prefix: "in/"}, 1000), rows...)
	}
}

// The body of the loop may write. What was there throughout is met once.
func testScanWhileWriting(f *fixture) {
	const n = 1200
	rows := make([]*ledger.Row, n)
	for i := range rows {
		rows[i] = f.row(key(fmt.Sprintf("%04d", i)))
	}
	f.put(rows...)
	met := map[string]bool{}
	for row, err := range f.store.Scan(f.ctx, ledger.Range{Pipeline: "p"}) {
		if err != nil {
			f.Fatal(err)
		}
		if row.VersionID != "" {
			continue // written below: may be seen or not
		}
		if met[row.Key] || !f.traits.ScanUnordered && row.RowKey != rows[len(met)].RowKey {
			f.Fatalf("met %s after %d rows", row.RowKey, len(met))
		}
		if len(met)%100 == 0 {
			f.writeAround(&row, rows[len(met):])
		}
		met[row.Key] = true
	}
	if len(met) != n {
		f.Fatalf("met %d rows of %d", len(met), n)
	}
}

// writeAround changes the row met, one far ahead, and adds one before and one
// after.
func (f *fixture) writeAround(met *ledger.Row, ahead []*ledger.Row) {
	f.Helper()
	far := ahead[len(ahead)-1]
	far2 := f.next(far)
	ahead[len(ahead)-1] = far2
	newer := f.next(met)
	behind, before := *f.row(met.RowKey), *f.row(met.RowKey)
	behind.VersionID, before.Key, before.VersionID = "v", met.Key[:3], met.Key
	changes := []ledger.Change{insert(&behind), insert(&before)}
	if far.RowKey != met.RowKey {
		changes = append(changes, update(far, far2), update(met, newer))
	}
	f.applied(f.swap(changes...)...)
}

// Scans may run side by side and inside each other.
func testScanNested(f *fixture) {
	rows := f.grid()
	depth := 0
	var descend func(r ledger.Range)
	descend = func(r ledger.Range) {
		if depth++; depth > 20 {
			return
		}
		for row, err := range f.store.Scan(f.ctx, r) {
			if err != nil {
				f.Fatal(err)
			}
			descend(ledger.Range{After: row.RowKey})
			f.stored(row.RowKey, &row)
			return
		}
	}
	descend(ledger.Range{})
	f.wantRows(f.scan(ledger.Range{}), rows...)
}

// A scan that is cancelled says so, or an audit would take the rest for absent.
func testScanCancelled(f *fixture) {
	rows := f.grid()
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	var last error
	n := 0
	for _, err := range f.store.Scan(ctx, ledger.Range{}) {
		if last != nil {
			f.Fatal("the scan went on after an error")
		}
		if last = err; err == nil {
			n++
		}
		cancel()
	}
	if n < len(rows) && !errors.Is(last, context.Canceled) {
		f.Fatalf("%d rows of %d and error %v, want context.Canceled", n, len(rows), last)
	}
}
