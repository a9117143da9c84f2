package storetest

import (
	"errors"
	"slices"
	"strings"

	"github.com/pawlhq/pawl/store"
)

var nameTests = []test{
	{name: "Awkward", run: testAwkwardNames},
	{name: "AwkwardSpaces", run: testAwkwardSpaces},
	{name: "Long", run: testLongNames},
	{name: "PartsStayApart", run: testPartsStayApart},
}

// A collation, an encoding or a path may treat some of these names as equal.
var awkward = []string{
	"a", "A", "aa", "a ", " a", "a\x00", "a\x00a", "a\x01", "a\n", "a\r\n", "a\t", "z", "Z", "é", "e\u0301", "É", "\xff", "\xff\xff",
	"\xfe", "\x00", "\x00\x00", "\x80", "\xc3", "\xc3\x28", "\xed\xa0\x80", "\uFFFD", "0", "00", "01", "1", "10", "2", "-1", "1e1", "ß", "ss", "SS",
	"ı", "i", "I", "İ", "ａ", "日本", "🦉", "_", "%", "%25", "%00", "\\", "\\x00", "'", "''", "\"", "`", ";", "--", "?", "#", "*", "[a]", "{}",
	".", "..", "../a", "./a", "/", "//", "/a", "a/", "a/b", "a//b", "a+b", "a b", "a%20b", "a%2Bb", "NULL", "null", "nil", "true", "NaN",
	"x'00'", "$1", ":a", "@a", "\u200b", "a\u200b", "\u202e", "a\x7f", "\x1b[31m", "~", "^", "|", "&", "a&b=c", "a\x00\x01b", "a\x00\xff\x00\x01b",
}

func testAwkwardNames(f *fixture) {
	records := make([]*store.Record, len(awkward))
	for i, name := range awkward {
		records[i] = f.record(name)
	}
	f.put(records...)
	f.stored(records...)
	sorted := slices.SortedFunc(slices.Values(records), byName)
	f.scans(store.Range{Space: space}, sorted...)
	f.due(store.DueRange{Space: space, Before: t0, Limit: len(records) + 1}, sorted...)
	for i, r := range records {
		f.applied(f.swap(remove(r))...)
		f.absent(r.Key)
		f.stored(records[i+1:]...)
	}
}

func testAwkwardSpaces(f *fixture) {
	records := make([]*store.Record, len(awkward))
	for i, name := range awkward {
		records[i] = f.record("k")
		records[i].Space = name
	}
	f.put(records...)
	f.stored(records...)
	for i, r := range records {
		f.scans(store.Range{Space: r.Space}, r)
		f.scans(store.Range{Space: r.Space, Newest: true}, r)
		f.due(store.DueRange{Space: r.Space, Before: t0, Limit: 2}, r)
		f.applied(f.swap(remove(r))...)
		f.stored(records[i+1:]...)
	}
}

func testLongNames(f *fixture) {
	n := f.traits.Name - len(space)
	var records []*store.Record
	for _, unit := range []string{"k", "\xff", "\x00", "é", "🦉", "/", "%2F", "\n"} {
		long := strings.Repeat(unit, n)
		for _, name := range []string{long[:n-1], long[:n-1] + "a", long[:n-1] + "A", long[:n-1] + "\x00", long[:n-1] + "\xff", long[:n/2]} {
			records = append(records, f.record(name))
		}
	}
	records = slices.CompactFunc(slices.SortedFunc(slices.Values(records), byName), func(a, b *store.Record) bool { return a.Key == b.Key })
	f.put(records...)
	f.stored(records...)
	f.scans(store.Range{Space: space}, records...)
	f.due(store.DueRange{Space: space, Before: t0, Limit: len(records) + 1}, records...)
}

// A driver must not join space and name so that two keys become equal.
func testPartsStayApart(f *fixture) {
	var records []*store.Record
	for _, k := range []store.Key{
		{Space: "a", Name: "bc"}, {Space: "ab", Name: "c"}, {Space: "a/b", Name: "c"}, {Space: "a", Name: "b/c"}, {Space: "a#b", Name: "c"},
		{Space: "a", Name: "b#c"}, {Space: "a\x00", Name: "b"}, {Space: "a", Name: "\x00b"}, {Space: "a\x00\x01b", Name: "c"}, {Space: "a", Name: "b\x00\x01c"},
		{Space: "b", Name: "a"}, {Space: "c", Name: "ab"}, {Space: "c", Name: "a/b"},
	} {
		r := f.record(k.Name)
		r.Space = k.Space
		records = append(records, r)
	}
	f.put(records...)
	f.stored(records...)
}

var bodyTests = []test{
	{name: "Awkward", run: testAwkwardBodies},
	{name: "Limit", run: testBodyLimit},
	{name: "Unacceptable", run: testUnacceptable},
}

func testAwkwardBodies(f *fixture) {
	var records []*store.Record
	for _, body := range append(slices.Clone(awkward), "", `{"a":"é\u0000\n"}`, "\u2028", "\U0010FFFF", "\uFEFFa", strings.Repeat("\x01", 100)) {
		if f.accepts(body) {
			r := f.record(string(rune('a' + len(records))))
			r.Body = body
			records = append(records, r)
		}
	}
	f.put(records...)
	f.stored(records...)
	for i, r := range records {
		records[i] = f.next(r)
		records[i].Body = r.Body + "é"
		f.applied(f.swap(update(r, records[i]))...)
	}
	f.stored(records...)
}

func (f *fixture) accepts(body string) bool {
	r := f.record("k")
	r.Body = body
	c := insert(r)
	return f.traits.Check(&c) == nil
}

func testBodyLimit(f *fixture) {
	for _, unit := range []string{"x", "\"", "\n", "🦉"} {
		r := f.record("of " + unit)
		r.Body = strings.Repeat(unit, f.traits.Body/len(unit))
		f.put(r)
		f.stored(r)
		f.refused(f.swap(insert(f.record(r.Name)))[0], r)
	}
}

func (f *fixture) unacceptable() map[string]store.Change {
	broken := func(edit func(c *store.Change)) store.Change {
		c := insert(f.record("bad"))
		edit(&c)
		return c
	}
	named := func(k store.Key) store.Change {
		return broken(func(c *store.Change) { c.Key, c.Next.Key = k, k })
	}
	return map[string]store.Change{
		"no space":       named(store.Key{Name: "bad"}),
		"no name":        named(store.Key{Space: space}),
		"long name":      named(key(strings.Repeat("k", f.traits.Name-len(space)+1))),
		"long body":      broken(func(c *store.Change) { c.Next.Body = strings.Repeat("x", f.traits.Body+1) }),
		"NUL":            broken(func(c *store.Change) { c.Next.Body = "a\x00" }),
		"invalid UTF-8":  broken(func(c *store.Change) { c.Next.Body = "a\xff" }),
		"surrogate":      broken(func(c *store.Change) { c.Next.Body = "\xed\xa0\x80" }),
		"other key":      broken(func(c *store.Change) { c.Next.Name = "other" }),
		"no nonce":       broken(func(c *store.Change) { c.Next.Nonce = store.Nonce{} }),
		"the same nonce": broken(func(c *store.Change) { c.Expect = c.Next.Nonce }),
	}
}

func testUnacceptable(f *fixture) {
	for name, c := range f.unacceptable() {
		good := f.record("good " + name)
		out := f.swap(c, insert(good))
		if !errors.Is(out[0].Err, store.ErrRejected) || out[0].Applied || out[0].Refused {
			f.Errorf("%s: %s, want ErrRejected", name, describe(&out[0]))
		}
		f.applied(out[1])
		f.stored(good)
	}
	f.absent(key("bad"), key("other"))
}
