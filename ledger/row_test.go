package ledger_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

func TestRowKeyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawRowKey().Draw(t, "a"), drawRowKey().Draw(t, "b")
		parts := func(k ledger.RowKey) []string { return []string{k.Pipeline, k.Bucket, k.Key, k.VersionID} }
		if got, want := a.Compare(b), slices.Compare(parts(a), parts(b)); cmp.Compare(got, 0) != want {
			t.Fatalf("%v to %v: %d, want %d", a, b, got, want)
		}
	})
}

func TestRowKeyString(t *testing.T) {
	for want, k := range map[string]ledger.RowKey{
		"gray s3://photos/in/cat.jpg":           {Pipeline: "gray", Bucket: "photos", Key: "in/cat.jpg"},
		`"two words" "s3://b/line\nbreak"`:      {Pipeline: "two words", Bucket: "b", Key: "line\nbreak"},
		`gray s3://photos/cat.jpg?versionId=v1`: {Pipeline: "gray", Bucket: "photos", Key: "cat.jpg", VersionID: "v1"},
	} {
		if got := k.String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestRangeMatch(t *testing.T) {
	k := ledger.RowKey{Pipeline: "p", Bucket: "b", Key: "in/cat.jpg"}
	for _, test := range []struct {
		r    ledger.Range
		want bool
	}{
		{ledger.Range{}, true},
		{ledger.Range{Pipeline: "p"}, true},
		{ledger.Range{Pipeline: "q"}, false},
		{ledger.Range{Pipeline: "p", Bucket: "b", Prefix: "in/"}, true},
		{ledger.Range{Pipeline: "p", Bucket: "c", Prefix: "in/"}, false},
		{ledger.Range{Pipeline: "p", Bucket: "b", Prefix: "in/cat.jpg.old"}, false},
		{ledger.Range{Pipeline: "p", Bucket: "b", Prefix: "out/"}, false},
		{ledger.Range{After: ledger.RowKey{Pipeline: "p", Bucket: "b", Key: "in/cat"}}, true},
		{ledger.Range{After: k}, false},
		{ledger.Range{After: ledger.RowKey{Pipeline: "q"}}, false},
	} {
		if got := test.r.Match(k); got != test.want {
			t.Errorf("%+v: %v", test.r, got)
		}
	}
}

// Other versions of Pawl read rows, so their form must not change.
func TestEncodedForm(t *testing.T) {
	const want = `{"v":"1.0","at":"2026-01-01T00:00:00.000001Z","seq":"0055aE0","gen":2,"kind":"removed",` +
		`"have":{"seq":"0054","gen":0,"kind":"created","version":"v","etag":"e","meta":"m","mtime":0,"size":7},` +
		`"fence":123,"owner":"w","until":60000,"doubt":false,"forced":true,"attempts":3,` +
		`"retry":"2026-01-01T00:00:00.0005Z","error":"<&>\"é\u0000\n�","dead":true,"verify":-1,` +
		`"event":0,"disorder":4,"since":0,"log":["0 raised: n","1000 order reset: ~~~f ~~o"],"colour":"red"}`
	wantSeq, err1 := event.ParseSequencer("0055aE0")
	haveSeq, err2 := event.ParseSequencer("0054")
	if err := cmp.Or(err1, err2); err != nil {
		t.Fatal(err)
	}
	got, err := ledger.Encode(&ledger.Row{
		RowKey: ledger.RowKey{Pipeline: "p", Bucket: "b", Key: "k"}, Nonce: ledger.Nonce{1},
		Want:  ledger.Version{Sequencer: wantSeq, Generation: 2, Kind: event.Removed},
		Have:  ledger.Version{Sequencer: haveSeq, Kind: event.Created, Identity: ledger.Identity{VersionID: "v", ETag: "e", ModTime: epoch, Meta: "m", Size: 7}},
		Lease: ledger.Lease{Owner: "w", Fence: 1767225600123, Until: epoch.Add(time.Minute)}, Forced: true, Attempts: 3,
		RetryAt: epoch.Add(500 * time.Microsecond), LastError: "<&>\"é\x00\n\xff", Dead: true, VerifyAt: epoch.Add(-time.Millisecond),
		EventTime: epoch, CreatedTime: epoch, Disorder: 4, Unknown: `{"colour":"red"}`,
		History:   []ledger.Entry{{At: epoch, What: "raised", Note: "n"}, {At: epoch.Add(-time.Second), What: "order reset", Note: "~fence 1767225600123 ~o"}},
		CreatedAt: epoch, UpdatedAt: epoch.Add(time.Microsecond),
	})
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestDecode(t *testing.T) {
	k := ledger.RowKey{Pipeline: "p", Bucket: "b", Key: "k"}
	const at = `"at":"2026-01-01T00:00:00Z"`
	r := ledger.Decode(k, ledger.Nonce{7}, `{"v":"1.7",`+at+`,"gen":1,"have":{"kind":"created","colour":"red"},"mood":[1,{"a":null}]}`)
	if r.Unreadable != nil || r.RowKey != k || r.Nonce != (ledger.Nonce{7}) || r.Want.Generation != 1 || r.Have.Generation != 1 || r.Unknown != `{"mood":[1,{"a":null}]}` {
		t.Errorf("a row of a newer Pawl: %+v", r)
	}
	if body, err := ledger.Encode(&r); err != nil || !strings.HasSuffix(body, `,"mood":[1,{"a":null}]}`) {
		t.Errorf("%s, %v: want the unknown members kept", body, err)
	}
	if r := ledger.Decode(k, ledger.Nonce{7}, `{"v":"1.0",`+at+`,"gen":1,"have":null}`); r.Unreadable != nil || r.Have.Generation != 0 {
		t.Errorf("%+v, want a row that has nothing", r)
	}
	for _, body := range []string{
		``, `{`, `[]`, ` null`, `{}`, `{"v":"1.0"`, `{"v":"2.0",` + at + `}`, `{"want":{"gen":1}}`, `{"v":"1.0",` + at + `,"seq":"xyz"}`,
		`{"v":"1.0",` + at + `,"doubt":"certain"}`, `{"v":"1.0",` + at + `,"kind":"moved"}`, `{"v":"1.0",` + at + `,"attempts":1,"attempts":2}`,
		`{"v":"1.0","at":5}`, `{"v":"1.0",` + at + `,"retry":9223372036854775807}`, `{"v":"1.0",` + at + `,"have":[]}`, `{"v":"1.0",` + at + `,"log":["raised"]}`,
		`{"v":"1.0","at":"9999-12-31T23:59:59-01:00"}`,
	} {
		r := ledger.Decode(k, ledger.Nonce{7}, body)
		if r.Unreadable == nil || !strings.Contains(r.Unreadable.Error(), "s3://b/k") || r.RowKey != k || r.Nonce != (ledger.Nonce{7}) {
			t.Errorf("%s: %+v, want an unreadable row whose error names the key", body, r)
		}
		if _, _, why := r.Claim("w", new(ledger.Policy), epoch); r.Settled() || r.State(epoch) != ledger.StateUnreadable || !r.Due().IsZero() || why != ledger.NotDue {
			t.Errorf("%s: settled %v, state %s, due %v, claim %d: want no claim", body, r.Settled(), r.State(epoch), r.Due(), why)
		}
	}
	_, err := ledger.Encode(&ledger.Row{RowKey: k, RetryAt: time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC)})
	if err == nil || !strings.Contains(err.Error(), "s3://b/k") {
		t.Errorf("error %v, want an error that names the row", err)
	}
}

func TestHistoryNotesAreTruncated(t *testing.T) {
	p := ledger.DefaultPolicy()
	r, _ := ledger.Row{}.Observe(&event.Event{Kind: event.Created, Time: epoch, Name: strings.Repeat("N\xff", 10_000)}, false, epoch)
	claimed, a, _ := r.Claim("w", &p, epoch)
	f := &ledger.Failure{Message: strings.Repeat("é\xfe", 10_000)}
	r, _ = claimed.Fail(&a, &ledger.Ending{}, f, 0, &p, epoch)
	texts := []string{r.LastError}
	for _, e := range r.History {
		texts = append(texts, e.Note)
	}
	for _, text := range texts {
		if len(text) > 2<<10 || !utf8.ValidString(text) {
			t.Errorf("%d bytes, valid %v: %.20q…", len(text), utf8.ValidString(text), text)
		}
	}
	if !strings.HasSuffix(r.LastError, "…") {
		t.Errorf("a truncated text has no ellipsis: %q", r.LastError)
	}
	for _, n := range []int{512, 513} {
		f.Message = strings.Repeat("x", n)
		if r, _ = claimed.Fail(&a, &ledger.Ending{}, f, 0, &p, epoch); (r.LastError == f.Message) != (n == 512) {
			t.Errorf("of %d bytes %d are kept", n, len(r.LastError))
		}
	}
}

func TestBackoffBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := ledger.DefaultPolicy()
		p.Base = time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "base"))
		p.Max = time.Duration(rapid.Int64Range(0, 1<<62).Draw(t, "max"))
		p.Attempts = 1000
		r, _ := ledger.Row{}.Observe(&event.Event{Kind: event.Created, Time: epoch}, false, epoch)
		r.Attempts = rapid.IntRange(0, 998).Draw(t, "attempts")
		r, a, _ := r.Claim("w", &p, epoch)
		jitter := rapid.Float64Range(0, 0.999999).Draw(t, "jitter")
		r, _ = r.Fail(&a, &ledger.Ending{}, &ledger.Failure{}, jitter, &p, epoch)
		if wait := r.RetryAt.Sub(epoch); wait < 0 || wait > p.Max {
			t.Fatalf("wait %v after %d attempts", wait, r.Attempts)
		}
	})
}

func TestDiedAt(t *testing.T) {
	entry := func(second int64, what string) ledger.Entry {
		return ledger.Entry{At: time.Unix(second, 0), What: what}
	}
	for _, test := range []struct {
		history []ledger.Entry
		want    time.Time
	}{
		{nil, time.Time{}},
		{[]ledger.Entry{entry(9, "raised"), entry(8, "dead"), entry(7, "claimed"), entry(5, "dead")}, time.Unix(8, 0)},
		{[]ledger.Entry{entry(9, "raised"), entry(8, "raised")}, time.Unix(8, 0)}, // the entry is no longer in the history
	} {
		if got := (&ledger.Row{Dead: true, History: test.history}).DiedAt(); !got.Equal(test.want) {
			t.Errorf("%v of %v, want %v", got, test.history, test.want)
		}
	}
}
