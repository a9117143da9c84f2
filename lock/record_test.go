package lock

import (
	"strings"
	"testing"
	"time"
)

func TestSinceIsUTC(t *testing.T) {
	holder := Record{TTL: 30_000}
	now := epoch.In(time.FixedZone("JST", 9*60*60))
	began := first(&holder, "nonce-nonce", now)
	for name, r := range map[string]Record{
		"first": began, "acquired": began.acquired(&holder, "nonce-nonce", now),
		"released": began.released("nonce-nonce", now), "forced": began.forced("nonce-nonce", now),
	} {
		if want := `"since":"` + epoch.UTC().Format(time.RFC3339Nano) + `"`; !strings.Contains(string(r.encode()), want) {
			t.Errorf("%s: %s, want %s", name, r.encode(), want)
		}
	}
}
