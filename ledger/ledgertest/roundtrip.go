package ledgertest

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

var roundTripTests = []test{
	{name: "EveryField", run: testEveryField},
	{name: "EveryPath", run: testEveryPath},
	{name: "Extremes", run: testExtremes},
	{name: "Sequencers", run: testSequencers},
}

// full makes a row with something in every field.
func (f *fixture) full(k ledger.RowKey) *ledger.Row {
	at := t0
	tick := func() time.Time { at = at.Add(time.Hour + time.Microsecond); return at }
	version := func(seq string, gen uint64, kind event.Kind) ledger.Version {
		return ledger.Version{
			Sequencer: f.sequencer(seq), Generation: gen, Kind: kind,
			Identity: ledger.Identity{VersionID: "v/" + seq, ETag: "etag" + seq, ModTime: tick(), Meta: "m" + seq, Size: 1 << 40},
		}
	}
	return &ledger.Row{
		RowKey: k, Nonce: f.nonce(),
		Want:      version("0055AED6DCD90281E5", 3, event.Removed),
		Have:      version("0055aed6dcd90281e0", 2, event.Created),
		Lease:     ledger.Lease{Owner: "host 1", Fence: 1767225600123, Until: tick()},
		Doubt:     true,
		Disorder:  3,
		Forced:    true,
		Attempts:  4,
		RetryAt:   tick(),
		LastError: "exit status 1: \"é\"\n\tsecond line\x00 'quoted' \\ ; -- \u2028",
		Dead:      true,
		VerifyAt:  tick(),
		EventTime: tick(), CreatedTime: tick(),
		History: []ledger.Entry{
			{At: tick(), What: "claimed", Note: "fence 1 by host 1"},
			{At: tick(), What: "raised", Note: "created 0055.1 ObjectCreated:Put"},
		},
		CreatedAt: tick(), UpdatedAt: tick(),
	}
}

func (f *fixture) sequencer(raw string) event.Sequencer {
	f.Helper()
	s, err := event.ParseSequencer(raw)
	if err != nil {
		f.Fatal(err)
	}
	return s
}

// empties lists the fields of v, recursively, that have their zero value.
func empties(path string, v reflect.Value) (names []string) {
	if v.IsZero() {
		return []string{path}
	}
	switch v.Interface().(type) {
	case time.Time, event.Sequencer, ledger.Nonce:
		return nil
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			names = append(names, empties(path+"."+v.Type().Field(i).Name, v.Field(i))...)
		}
	case reflect.Slice:
		for i := range v.Len() {
			names = append(names, empties(path, v.Index(i))...)
		}
	}
	return names
}

func testEveryField(f *fixture) {
	k := ledger.RowKey{Pipeline: "p", Bucket: "b", Key: "k", VersionID: "v1"}
	r := f.full(k)
	if e := empties("Row", reflect.ValueOf(*r)); !slices.Equal(e, []string{"Row.Token", "Row.Unreadable"}) {
		f.Fatalf("the suite does not fill in %v", e)
	}
	f.put(r)
	f.stored(k, r)

	for _, doubt := range []bool{false, true} {
		n := f.next(r)
		n.Doubt, n.Forced = doubt, !doubt
		f.applied(f.swap(update(r, n))...)
		f.stored(k, n)
		r = n
	}

	bare := &ledger.Row{RowKey: k, Nonce: f.nonce(), CreatedAt: t0, UpdatedAt: t0}
	f.applied(f.swap(update(r, bare))...)
	f.stored(k, bare)
}

// However a row is read, it is the same.
func testEveryPath(f *fixture) {
	k := ledger.RowKey{Pipeline: "p", Bucket: "b", Key: "k", VersionID: "v1"}
	r := f.full(k)
	r.Dead = false // or it would never be due
	f.put(r)
	f.stored(k, r)
	f.refused(f.swap(insert(f.row(k)))[0], r)
	f.wantDue("p", r.Due(), 10, r)
	f.wantRows(f.scan(ledger.Range{}), r)
}

func testExtremes(f *fixture) {
	r := f.full(key("k"))
	r.Lease.Fence = math.MaxInt64
	r.Want.Generation, r.Have.Generation = math.MaxUint64, math.MaxUint64-1
	r.Want.Identity.Size = math.MaxInt64
	r.Attempts = math.MaxInt32
	r.EventTime = time.Unix(0, 0).UTC()
	r.RetryAt = time.Date(2899, 12, 31, 23, 59, 59, 999999000, time.UTC)
	r.Want.Identity.ETag = strings.Repeat("é", 512)
	r.Want.Identity.VersionID = strings.Repeat("v", 1024)
	r.Want.Sequencer = f.sequencer(strings.Repeat("f", event.MaxSequencer))
	r.LastError = strings.Repeat("\x00\n\"", 200)
	r.History = make([]ledger.Entry, ledger.MaxHistory)
	for i := range r.History {
		r.History[i] = ledger.Entry{At: t0.Add(time.Duration(i) * time.Microsecond), What: "failed", Note: strings.Repeat("\u0001ü", 170)}
	}
	f.put(r)
	f.stored(key("k"), r)
}

// The order of sequencers is the same after storing as before, and as that of
// their canonical text.
func testSequencers(f *fixture) {
	raws := []string{
		"0", "00", "000", "1", "10", "100", "01", "001", "0010", "0A", "0a", "a", "A0", "b", "B", "F", "f0f", "9",
		"0055AED6DCD90281E5", "0055AED6DCD90281E50", "0055AED6DCD90281E6", "0055aed6dcd90281e5", "0055AED6DCD90281",
		"17D3C6E2B1A0F4E8", "17D3C6E2B1A0F4E9", strings.Repeat("0", 100) + "1", strings.Repeat("f", 100),
	}
	rows := make([]*ledger.Row, len(raws))
	for i, raw := range raws {
		rows[i] = f.row(key(string(rune('a' + i))))
		rows[i].Want.Sequencer = f.sequencer(raw)
	}
	f.put(rows...)
	for i, r := range rows {
		got := f.load(r.RowKey).Want.Sequencer
		if got.Raw() != raws[i] {
			f.Errorf("stored %q, loaded %q", raws[i], got.Raw())
		}
		for j, o := range rows {
			other := f.load(o.RowKey).Want.Sequencer
			want := f.sequencer(raws[i]).CompareSameKey(f.sequencer(raws[j]))
			if c := got.CompareSameKey(other); c != want {
				f.Errorf("%s to %s: %d after storing, %d before", raws[i], raws[j], c, want)
			}
			if c := strings.Compare(got.String(), other.String()); c != want {
				f.Errorf("%s to %s: %d as text, want %d", got, other, c, want)
			}
		}
	}
}
