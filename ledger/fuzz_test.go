package ledger_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

func FuzzDecode(f *testing.F) {
	const head = `{"v":"1.0","at":"2026-01-01T00:00:00.000001Z",`
	for _, seed := range []string{
		head + `"seq":"0055aE0","gen":2,"kind":"removed",` +
			`"have":{"seq":"0054","gen":0,"kind":"created","version":"v","etag":"e","mtime":0,"meta":"m","size":7},` +
			`"owner":"w","fence":9,"until":5000,"doubt":true,"attempts":3,"retry":1,"error":"<&>\"é\u0000\n�","dead":true,"verify":1,` +
			`"event":-1,"log":["0 raised: n","5 order reset","2026-01-01T00:00:00.000001Z claimed"],"since":0}`,
		head + `"gen":18446744073709551615,"attempts":-9223372036854775808,"verify":"9999-12-31T23:59:59.999999999Z","have":null}`,
		head + `"owner":"w","fence":9223372036854775806,"until":"0000-01-01T00:00:00-23:59","mood":[1,{"a":null}]}`,
		head + `"owner":"w","fence":9,"until":251635190399999}`, // other workers may never get it
		head + `"kind":"none","etag":"e","mtime":-1000,"size":5,"have":{"mtime":"","etag":"","size":0}}`,
		head + `"log":[` + strings.Repeat(`"1 x",`, 40) + `"-5 "],"error":"` + strings.Repeat("é", 4000) + `"}`,
		head + `"owner":"\ud800"}`, head + `"seq":"xyz"}`, head + `"doubt":"certain"}`, head + `"attempts":1,"attempts":2}`, head + `"have":{"Gen":1}}`,
		`null`, `[]`, `{"v":"1.0","at":"2026-01-01T00:00:00+05:00","error":"` + "\xff" + `"}`, `{"v":"1.9","at":"0001-01-01T00:00:00Z","error":1}`, `{"v":"2.0"}`,
	} {
		f.Add(seed)
	}
	key, nonce := ledger.RowKey{Pipeline: "p", Bucket: "b", Key: "k\n"}, ledger.Nonce{7}
	f.Fuzz(func(t *testing.T, body string) {
		row := ledger.Decode(key, nonce, body)
		if err := row.Unreadable; err != nil {
			row.Unreadable = nil
			if !strings.Contains(err.Error(), key.String()) || cmp.Diff(row, ledger.Row{RowKey: key, Nonce: nonce}, sequencers) != "" {
				t.Errorf("%+v, %v: want nothing but the key and the nonce, and an error that names the row", row, err)
			}
			return
		}
		if row.RowKey != key || row.Nonce != nonce {
			t.Errorf("the row is %s, %x: that is not the body's to say", row.RowKey, row.Nonce)
		}
		checkComesBack(t, &row)
		checkGoesOn(t, &row)
	})
}

var sequencers = cmp.Comparer(func(a, b event.Sequencer) bool { return a.Raw() == b.Raw() })

func checkComesBack(t *testing.T, row *ledger.Row) {
	t.Helper()
	body, err := ledger.Encode(row)
	if err != nil {
		t.Fatal(err)
	}
	back := ledger.Decode(row.RowKey, row.Nonce, body)
	if back.Unreadable != nil {
		t.Fatalf("%s: %v", body, back.Unreadable)
	}
	if diff := cmp.Diff(*row, back, sequencers); diff != "" {
		t.Errorf("the decoded row differs (-written +read):\n%s", diff)
	}
	if again, err := ledger.Encode(&back); err != nil || again != body {
		t.Errorf("the row is encoded as\n%s\nand then as\n%s\n%v", body, again, err)
	}
}

// checkGoesOn checks that the object can be settled from any state of its row.
func checkGoesOn(t *testing.T, row *ledger.Row) {
	t.Helper()
	p := ledger.DefaultPolicy()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	row.State(now)
	row.Due()
	row.Purgeable(&p, now)
	row.Claim("w", &p, now)

	next, _ := row.Redrive(false, now).Observe(&event.Event{Kind: event.Created, Time: now, ETag: "e"}, false, now)
	if next.Settled() || next.Have.Compare(next.Want) > 0 {
		return // not written by Pawl: Have is ahead of Want
	}
	if next.Live(now) || next.RetryAt.After(now) {
		now = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC).Add(-time.Hour) // after all waits of the row
	}
	if next.Live(now) || next.RetryAt.After(now) {
		return // not written by Pawl: it waits for the last encodable hour
	}
	next, a, why := next.Claim("w", &p, now)
	if why != ledger.Granted || a.Fence <= row.Lease.Fence && row.Lease.Fence < math.MaxInt64 {
		t.Fatalf("Claim returned %d, with fence %d after %d", why, a.Fence, row.Lease.Fence)
	}
	failed, ok := next.Fail(&a, &ledger.Ending{Unsure: true}, &ledger.Failure{Message: "broken"}, 0.5, &p, now)
	if !ok || len(failed.History) > ledger.MaxHistory {
		t.Errorf("failed %v, with %d entries of history", ok, len(failed.History))
	}
	next, ok = next.Complete(&a, &ledger.Ending{Read: ledger.Read{Kind: event.Created}}, true, &p, now)
	if !ok || !next.Settled() || next.Held() || next.Attempts != 0 {
		t.Errorf("completed %v: %s, held %v, attempts %d", ok, next.State(now), next.Held(), next.Attempts)
	}
	checkComesBack(t, &next)
}
