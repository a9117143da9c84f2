package buckettest

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/bucket"
)

var keyTests = map[string]func(*testing.T, Harness){
	"keys/plain":   testPlainKeys,
	"keys/awkward": testAwkwardKeys,
}

var plainKeys = []string{
	"a b", "a+b", "a%2Bb", "a%20b", "%", "%zz", "é", "e\u0301", "🐕", "sub/a b+c/é.txt",
	"q?versionId=x", "h#x", "amp&x=y", `quo"te`, "<x>&amp;", "semi;colon:", "star*", "tilde~", "(p)'!$,@=",
	"lo", "LO", "x.", ".hidden", "...", "un_der-score",
}

// A store may reject these keys, but it must not treat two of them as the same key.
var awkwardKeys = []string{
	"..", ".", "../up", "../../../../etc/pawl", "d/../e", "d/./e", "d/e/..", "d/e",
	"/lead", "//lead", "lead", "trail", "trail/", "two//slashes", "two/slashes", "/",
	"line\nfeed", "carriage\rreturn", "tab\there", "\x01", "nul\x00", "\x7f", "back\\slash",
	" ", " lead", "trail ", "\xff\xfe", "half\xc3", "\ufffd", "\ufeffbom",
	strings.Repeat("k", 1024), strings.Repeat(strings.Repeat("s", 200)+"/", 5) + strings.Repeat("t", 19),
}

func testPlainKeys(t *testing.T, h Harness) {
	for _, key := range plainKeys {
		h.put(t, key, "content of "+key)
	}
	h.wantKeys(t, plainKeys)
}

func testAwkwardKeys(t *testing.T, h Harness) {
	stored := map[string]string{}
	for _, key := range awkwardKeys {
		_, err := h.Store.Put(t.Context(), h.ref(key), object("content of "+key), bucket.Condition{IfAbsent: true})
		other, taken := stored[h.alias(key)]
		switch {
		case errors.Is(err, bucket.ErrInvalid):
			wantError(t, "Put", err, bucket.ErrInvalid)
			t.Logf("refused: %.40q", key)
		case taken && errors.Is(err, bucket.ErrPrecondition):
			t.Logf("the store treats %.40q and %.40q as the same key", key, other)
		case taken:
			t.Errorf("Put %.40q, declared to be the same as %.40q = %v, want ErrPrecondition", key, other, err)
		case err != nil && strings.ContainsRune(key, 0):
			t.Logf("refused, but not with ErrInvalid: %.40q: %v", key, err)
		case err != nil:
			t.Errorf("Put %.40q = %v, want it stored or ErrInvalid", key, err)
		default:
			stored[h.alias(key)] = key
		}
	}
	accepted := slices.Collect(maps.Values(stored))
	h.wantKeys(t, accepted)
	for _, key := range accepted {
		if err := h.Store.Delete(t.Context(), h.ref(key), bucket.Condition{}); err != nil {
			t.Errorf("Delete %.40q: %v", key, err)
		}
		h.wantAbsent(t, key)
	}
}

func (h Harness) alias(key string) string {
	if h.Alias == nil {
		return key
	}
	return h.Alias(key)
}

func (h Harness) wantKeys(t *testing.T, keys []string) {
	t.Helper()
	var want []string
	for _, key := range keys {
		want = append(want, h.alias(key))
		info, err := h.Store.Head(t.Context(), h.ref(key))
		if err != nil || info.Key != key {
			t.Errorf("Head %.40q = %+v, %v", key, info, err)
			continue
		}
		h.wantContent(t, key, "content of "+key)
	}
	slices.Sort(want)
	got := h.list(t, "", "")
	if !h.ListsBytes {
		want, got = slices.DeleteFunc(want, notXML), slices.DeleteFunc(got, notXML)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("List (-want +got):\n%s", diff)
	}
}

// notXML also reports the replacement character.
func notXML(key string) bool {
	return !utf8.ValidString(key) || strings.ContainsFunc(key, func(r rune) bool {
		return r == utf8.RuneError || (r < ' ' && r != '\t' && r != '\n' && r != '\r')
	})
}
