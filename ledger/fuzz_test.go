package ledger_test

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// FuzzDecode checks that a row that can be read, whoever wrote it, is written
// back as it was, and that every transition goes on from it.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"want":{"seq":"0055aE0","gen":2,"kind":"removed"},` +
			`"have":{"seq":"0054","kind":"created","id":{"version":"v","etag":"e","mtime":"2026-01-01T00:00:00Z","meta":"m","size":7}},` +
			`"lease":{"owner":"w","fence":9,"until":"2026-01-01T00:00:00Z"},"doubt":true,"attempts":3,` +
			`"retry_at":"2026-01-01T00:00:00Z","last_error":"<&>\"é\u0000\n�","dead":true,"verify_at":"2026-01-01T00:00:00Z",` +
			`"event_time":"2026-01-01T00:00:00Z","history":[{"at":"2026-01-01T00:00:00Z","what":"raised","note":"n"}],` +
			`"created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00.000001Z"}`,
		`{"want":{"gen":18446744073709551615},"attempts":-9223372036854775808,"verify_at":"9999-12-31T23:59:59.999999999Z"}`,
		`{"lease":{"owner":"w","fence":9223372036854775806,"until":"0000-01-01T00:00:00-23:59"},"mood":[1,{"a":null}]}`,
		`{"lease":{"owner":"w","fence":9,"until":"9999-12-31T23:30:00Z"}}`, // others may never have it
		`{"history":[` + strings.Repeat(`{"at":"2026-01-01T00:00:00Z"},`, 40) + `{}],"last_error":"` + strings.Repeat("é", 4000) + `"}`,
		`{"lease":{"owner":"\ud800"}}`, `{"want":{"seq":"xyz"}}`, `{"doubt":"certain"}`, `{"attempts":1,"attempts":2}`, `{"want":null,"Want":{"gen":1}}`, `[]`, "{\"last_error\":\"\xff\"}",
	} {
		f.Add([]byte(seed))
	}
	key, nonce := ledger.RowKey{Pipeline: "p", Bucket: "b", Key: "k\n"}, ledger.Nonce{7}
	f.Fuzz(func(t *testing.T, body []byte) {
		row := ledger.Decode(key, nonce, body)
		if err := row.Unreadable; err != nil {
			row.Unreadable = nil
			if !strings.Contains(err.Error(), key.String()) || cmp.Diff(row, ledger.Row{RowKey: key, Nonce: nonce}, sequencers) != "" {
				t.Errorf("%+v, %v: want nothing but the key and the nonce, and an error that names the row", row, err)
			}
			return
		}
		if row.RowKey != key || row.Nonce != nonce || row.Token != "" {
			t.Errorf("the row is %s, %x, %q: that is not the body's to say", row.RowKey, row.Nonce, row.Token)
		}
		checkComesBack(t, &row)
		checkGoesOn(t, &row)
	})
}

var sequencers = cmp.Comparer(func(a, b event.Sequencer) bool { return a.Raw() == b.Raw() })

// checkComesBack checks that what is written is read as it was, and written
// again as it stands.
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
		t.Errorf("it comes back as another (-written +read):\n%s", diff)
	}
	if again, err := ledger.Encode(&back); err != nil || !bytes.Equal(again, body) {
		t.Errorf("it is written as\n%s\nand then as\n%s\n%v", body, again, err)
	}
}

// checkGoesOn checks that an operator, an event and a worker can make the object
// settle, whatever its row says.
func checkGoesOn(t *testing.T, row *ledger.Row) {
	t.Helper()
	p := ledger.DefaultPolicy()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	row.State(now)
	row.Due()
	row.Forget(&p, now)
	row.Claim("w", &p, now)

	next, _ := row.Redrive(false, now).Observe(&event.Event{Kind: event.Created, Time: now, ETag: "e"}, false, now)
	if next.Settled() || next.Have.Compare(next.Want) > 0 {
		return // no Pawl wrote that: Have was ahead
	}
	if next.Live(now) || next.RetryAt.After(now) {
		now = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC).Add(-time.Hour) // whatever it waits for has passed
	}
	if next.Live(now) || next.RetryAt.After(now) {
		return // no Pawl wrote that: it waits for the last hour of what can be written
	}
	next, a, why := next.Claim("w", &p, now)
	if why != ledger.Granted || a.Fence <= row.Lease.Fence && row.Lease.Fence < math.MaxInt64 {
		t.Fatalf("the claim says %d, with fence %d after %d", why, a.Fence, row.Lease.Fence)
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
