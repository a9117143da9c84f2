package ledgertest

import (
	"slices"
	"strings"

	"github.com/pawlhq/pawl/ledger"
)

var keyTests = []test{
	{name: "AwkwardKeys", run: testAwkwardKeys},
	{name: "AwkwardVersions", run: testAwkwardVersions},
	{name: "LongKeys", run: testLongKeys},
	{name: "PartsStayApart", run: testPartsStayApart},
}

// awkward lists names that a collation, an encoding or a path may confuse. Each
// is a different object.
var awkward = []string{
	"a", "A", "aa", "a ", " a", "a\x00", "a\x00a", "a\x01", "a\n", "a\r\n", "a\t", "z", "Z", "é", "e\u0301", "É", "\xff", "\xff\xff",
	"\xfe", "\x00", "\x00\x00", "\x80", "\xc3", "\xc3\x28", "\xed\xa0\x80", "\uFFFD", "0", "00", "01", "1", "10", "2", "-1", "1e1", "ß", "ss", "SS",
	"ı", "i", "I", "İ", "ａ", "日本", "🦉", "_", "%", "%25", "%00", "\\", "\\x00", "'", "''", "\"", "`", ";", "--", "?", "#", "*", "[a]", "{}",
	".", "..", "../a", "./a", "/", "//", "/a", "a/", "a/b", "a//b", "a+b", "a b", "a%20b", "a%2Bb", "NULL", "null", "nil", "true", "NaN",
	"x'00'", "$1", ":a", "@a", "\u200b", "a\u200b", "\u202e", "a\x7f", "\x1b[31m", "~", "^", "|", "&", "a&b=c",
}

func testAwkwardKeys(f *fixture) {
	f.keepApart(key)
}

func testAwkwardVersions(f *fixture) {
	f.keepApart(func(s string) ledger.RowKey {
		return ledger.RowKey{Pipeline: "p", Bucket: "b", Key: "k", VersionID: s}
	})
	bare := f.row(key("k"))
	f.put(bare)
	f.stored(key("k"), bare)
}

// keepApart stores a row for each awkward name, finds each again and no other,
// sees them in byte order, and removes one by one.
func (f *fixture) keepApart(of func(string) ledger.RowKey) {
	f.Helper()
	rows := make([]*ledger.Row, len(awkward))
	for i, s := range awkward {
		rows[i] = f.row(of(s))
	}
	f.put(rows...)
	for _, r := range rows {
		f.stored(r.RowKey, r)
	}
	f.wantRows(f.scan(ledger.Range{}), rows...)
	for i, r := range rows {
		f.applied(f.swap(remove(r))...)
		f.stored(r.RowKey, nil)
		if i+1 < len(rows) {
			f.stored(rows[i+1].RowKey, rows[i+1])
		}
	}
}

// S3 allows 1,024 bytes, all of which count.
func testLongKeys(f *fixture) {
	var rows []*ledger.Row
	for _, unit := range []string{"k", "\xff", "\x00", "é", "🦉", "/", "%2F", "\n"} {
		long := strings.Repeat(unit, 1024)[:1023]
		for _, last := range []string{"", "a", "A", "\x00", "\xff"} {
			rows = append(rows, f.row(key(long+last)))
		}
	}
	rows = append(rows, f.row(ledger.RowKey{Pipeline: "p", Bucket: "b", Key: strings.Repeat("k", 1024), VersionID: strings.Repeat("\xfe", 1024)}))
	f.put(rows...)
	for _, r := range rows {
		f.stored(r.RowKey, r)
	}
	f.wantRows(f.scan(ledger.Range{}), rows...)
}

// The four parts of a key are not joined in a way that two keys could share.
func testPartsStayApart(f *fixture) {
	var rows []*ledger.Row
	for _, k := range [][4]string{
		{"p", "b", "k", ""}, {"p", "b", "", "k"}, {"p", "bk", "", ""}, {"pb", "k", "", ""}, {"p", "b", "k", "k"},
		{"p", "b", "k\x00", ""}, {"p", "b", "k", "\x00"}, {"p", "b\x00k", "", ""}, {"p\x00b", "k", "", ""}, {"p", "b/k", "", ""},
		{"p", "b", "k/v", ""}, {"p", "b", "k", "v"}, {"p", "b/k", "v", ""}, {"p", "b", "k?versionId=v", ""},
		{"q", "b", "k", ""}, {"p", "c", "k", ""}, {"p", "b", "l", ""}, {"b", "p", "k", ""}, {"p", "k", "b", ""},
	} {
		rows = append(rows, f.row(ledger.RowKey{Pipeline: k[0], Bucket: k[1], Key: k[2], VersionID: k[3]}))
	}
	f.put(rows...)
	for _, r := range rows {
		f.stored(r.RowKey, r)
	}
	f.wantRows(f.scan(ledger.Range{}), rows...)
}

// wantRows compares got with want in key order.
func (f *fixture) wantRows(got []ledger.Row, want ...*ledger.Row) {
	f.Helper()
	want = slices.Clone(want)
	slices.SortFunc(want, func(a, b *ledger.Row) int { return a.Compare(b.RowKey) })
	sameKeys(f, got, want)
	for i := range want {
		f.same(&got[i], want[i])
	}
}

// sameKeys is easier to read than a difference of whole rows.
func sameKeys(f *fixture, got []ledger.Row, want []*ledger.Row) {
	f.Helper()
	g, w := []string{}, []string{}
	for i := range got {
		g = append(g, got[i].RowKey.String())
	}
	for i := range want {
		w = append(w, want[i].RowKey.String())
	}
	if d := diff(w, g); d != "" {
		f.Fatalf("keys (-want +got):\n%s", d)
	}
}
