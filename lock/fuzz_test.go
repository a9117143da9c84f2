package lock

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/cell"
)

func FuzzDecode(f *testing.F) {
	for _, c := range invalidLeases {
		f.Add([]byte(c.content))
	}
	full := Record{
		State: Held, Token: 1<<62 - 2, Nonce: strings.Repeat("n", 64), ID: strings.Repeat("i", MaxID), Owner: "<&>\"\u00e9\u0000\n\u2028", Host: "h", PID: -1, Reason: "why",
		TTL: MaxTTL.Milliseconds(), Since: epoch.In(time.FixedZone("", -23*3600)), Limit: MaxSlots, Before: []string{"", strings.Repeat("x", maxNonce)},
	}
	for _, seed := range []string{
		string(full.encode()), leaseText(), leaseText("released", "held"),
		leaseText(`"token":7`, `"token":7,"more":{"a":[null]},"prev_nonces":["`+strings.Repeat(`x","`, 30)+`y"]`),
		leaseText("2026-01-01T00:00:00Z", "0000-01-01T00:00:00-23:59"), leaseText("2026-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999+23:59"),
		leaseText(`"token":7`, `"token":7,"owner":"\ud800"`), leaseText(`"token":7`, `"token":7.0`), leaseText(`"token":7`, `"token":1e3`),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		rec, err := decode(body)
		if err != nil {
			if !errors.Is(err, ErrForeign) && !errors.Is(err, ErrNewer) {
				t.Errorf("%v is neither foreign nor newer", err)
			}
			return
		}
		wantRoundTrip(t, &rec)
		holder := Record{TTL: MaxTTL.Milliseconds(), Host: "h", PID: 1}
		for _, next := range []Record{
			rec.renewed("nonce-nonce"), rec.released("nonce-nonce", epoch), rec.forced("nonce-nonce", epoch), rec.acquired(&holder, "nonce-nonce", epoch),
		} {
			if next.Token < 1 {
				continue // the token overflows
			}
			wantRoundTrip(t, &next)
			if next.Before[0] != rec.Nonce || len(next.Before) > maxBefore || len(next.Before) > len(rec.Before)+1 {
				t.Errorf("it carries %q forward", next.Before)
			}
		}
	})
}

func wantRoundTrip(t *testing.T, rec *Record) {
	t.Helper()
	body := rec.encode()
	back, err := decode(body)
	if err != nil {
		t.Fatalf("%s cannot be read: %v", body, err)
	}
	if again := back.encode(); !bytes.Equal(body, again) {
		t.Errorf("written\n%s\nand again\n%s", body, again)
	}
}

func FuzzLineage(f *testing.F) {
	ids := strings.TrimSuffix(strings.Repeat("0123456789abcdef,", maxIDs), ",")
	for _, seed := range [][3]string{
		{"", "", ""}, {"1", "0123456789abcdef", ""}, {"48", ids, "7"}, {"49", ids + ",0123456789abcdef", "9223372036854775807"},
		{"9223372036854775807", ids, "-1"}, {"0", "x", "x"}, {"-1", ",,", "1e3"}, {"2", "a,b,c", ""}, {"007", ",", " 1"}, {"9223372036854775808", "a", "0"},
	} {
		f.Add(seed[0], seed[1], seed[2], int64(5), true)
	}
	f.Fuzz(func(t *testing.T, count, ids, fence string, under int64, refused bool) {
		users := map[string]string{metaCount: count, metaIDs: ids, metaFence: fence, "colour": "red"}
		was := lineageOf(users)
		if was.count < 0 || (was.count == 0) != (len(was.ids) == 0) || int64(len(was.ids)) > was.count {
			t.Fatalf("%+v makes no sense", was)
		}
		if n, err := strconv.ParseInt(fence, 10, 64); err == nil && n != was.fence {
			t.Errorf("the fence is %d, want %d", was.fence, n)
		}
		const id = "fedcba9876543210"
		next := was.with(id, max(under, 0))
		if len(next.ids) > maxIDs || next.ids[0] != id || next.fence < was.fence || next.fence < under {
			t.Errorf("%+v after %+v", next, was)
		}
		metadata, fits := next.metadata(users)
		if metadata["colour"] != "red" || !fits {
			t.Errorf("the user's metadata are %v", metadata)
		}
		if back := lineageOf(metadata); next.count > 0 && fmt.Sprint(back) != fmt.Sprint(next) {
			t.Errorf("written %+v, read %+v", next, back)
		}
		base, now := snapshot{true, "e1", was}, snapshot{true, "e2", next}
		if outcome, known := classifyUpdate(now, base, id, refused); outcome != cell.Landed || !known {
			t.Errorf("an update that landed is %v, %v", outcome, known)
		}
		if outcome, known := classifyUpdate(base, base, id, refused); !slices.Contains(was.ids, id) && (outcome != cell.Unclear || !known) {
			t.Errorf("without a change it is %v, %v", outcome, known)
		}
		other := snapshot{true, "e3", was.with("another", 0)}
		if outcome, known := classifyUpdate(other, base, id, refused); !slices.Contains(was.ids, id) && (outcome != cell.Lost || !known && was.count > 0 && next.count > 0 && !refused) {
			t.Errorf("after another update it is %v, %v", outcome, known)
		}
	})
}
