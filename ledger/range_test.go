package ledger

import "testing"

func TestBeyond(t *testing.T) {
	for prefix, want := range map[string]string{
		"a": "b", "a/": "a0", "a\xff": "b", "a\xff\xff": "b", "\xc3": "\xc4", "\uFFFD": "\xef\xbf\xbe", "a\x00": "a\x01", "\xfe\xff": "\xff",
	} {
		if got, ok := beyond(prefix); !ok || got != want {
			t.Errorf("%q: %q, %v, want %q", prefix, got, ok, want)
		}
	}
	for _, prefix := range []string{"", "\xff", "\xff\xff"} {
		if got, ok := beyond(prefix); ok {
			t.Errorf("%q: %q, want none", prefix, got)
		}
	}
}
