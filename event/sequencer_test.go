package event_test

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/event"
	"pgregory.net/rapid"
)

func sequencer(t interface{ Fatal(...any) }, raw string) event.Sequencer {
	s, err := event.ParseSequencer(raw)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSequencerOrder(t *testing.T) {
	// Oldest first.
	order := []string{
		"", "0", "00001", "0001", "0055AED6DCD9", "0055AED6DCD90281E5", "0055aed6dcd90281e6",
		"0055AED6DD", "01", "1", "18E9EC8959B1659F", "18E9EC8A543053DC", "9", "A", "ab", "AC", "F", "FF",
	}
	for i, a := range order {
		for j, b := range order {
			got := sequencer(t, a).CompareSameKey(sequencer(t, b))
			if want := cmp.Compare(i, j); got != want {
				t.Errorf("%q compared with %q is %d, want %d", a, b, got, want)
			}
		}
	}
}

func TestSequencerCanonicalForm(t *testing.T) {
	for raw, want := range map[string]string{
		"": "", "0": "0", "0000": "0", "00ab00": "00AB", "617b398000000000": "617B398", "10": "1",
	} {
		s := sequencer(t, raw)
		if s.String() != want || s.Raw() != raw || s.IsZero() != (raw == "") {
			t.Errorf("%q has the canonical form %q, raw %q, zero %t", raw, s, s.Raw(), s.IsZero())
		}
	}
}

func TestSequencerMustBeHex(t *testing.T) {
	for _, raw := range []string{"g", "0x1", " 1", "1 ", "-1", "1.0", "é", "\x00", "12\n", strings.Repeat("1", 129)} {
		if s, err := event.ParseSequencer(raw); err == nil {
			t.Errorf("%q was parsed as %s", raw, s)
		}
	}
	if _, err := event.ParseSequencer(strings.Repeat("1", event.MaxSequencer)); err != nil {
		t.Error(err)
	}
}

func TestSequencerOrderIsTheDocumentedRule(t *testing.T) {
	hex := rapid.StringOfN(rapid.SampledFrom([]rune("000123abcABCF")), 1, 12, -1)
	rapid.Check(t, func(t *rapid.T) {
		a, b := hex.Draw(t, "a"), hex.Draw(t, "b")
		n := max(len(a), len(b))
		pad := func(s string) string { return strings.ToUpper(s) + strings.Repeat("0", n-len(s)) }
		want := strings.Compare(pad(a), pad(b))

		s, u := sequencer(t, a), sequencer(t, b)
		if got := s.CompareSameKey(u); got != want && !(allZeros(a) && allZeros(b)) {
			t.Fatalf("%q compared with %q is %d, want %d", a, b, got, want)
		}
		if got := strings.Compare(s.String(), u.String()); got != s.CompareSameKey(u) {
			t.Fatalf("the text of %q and %q compares as %d", a, b, got)
		}
		if s.CompareSameKey(u) != -u.CompareSameKey(s) {
			t.Fatalf("%q and %q: order depends on the side", a, b)
		}
		text, err := s.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var back event.Sequencer
		if err := back.UnmarshalText(text); err != nil || back.String() != s.String() || back.Raw() != s.Raw() {
			t.Fatalf("%q came back as %q, %v", a, back.Raw(), err)
		}
		if !s.SameShape(s) {
			t.Fatalf("%q does not have the same shape as itself", a)
		}
	})
}

func allZeros(s string) bool { return strings.Trim(s, "0") == "" }

func TestSameShape(t *testing.T) {
	tests := []struct {
		a, b string
		want bool
	}{
		{"0055AED6DCD90281E5", "0067C41F84A0B1C2D3", true},
		{"0055AED6DCD90281E5", "0067C41F84", true},        // the number of trailing digits may vary
		{"0055AED6DCD90281E5", "617f08299329d189", false}, // SQS and EventBridge on one key
		{"617F08299329D189", "617f08299329d189", false},
		{"617f08299329d189", "6170829932918900", true}, // no letters, so no case
		{"", "617f08299329d189", true},
		{"", "0055AED6DCD90281E5", true}, // the first known sequencer
		// Azure mixes cases and lengths.
		{"000000000000000000000000000089A4000000000018d6ea", "000000000000000000000000000089A40000000000190000", true},
		{"00000000000004420000000000028963", "000000000000000000000000000089A4000000000018d6ea", false},
		{"0000000000000281000000000000FFFF", "00000000000002810000000000010000", true},
		{"00000000000000FF0000000000000001", "00000000000001000000000000000001", true},
		{"000000000000000000000000000089A4000000000018d6ea", "000000000000000000000000000089a4000000000018d6ea", true},
	}
	for _, test := range tests {
		a, b := sequencer(t, test.a), sequencer(t, test.b)
		if a.SameShape(b) != test.want || b.SameShape(a) != test.want {
			t.Errorf("SameShape(%q, %q) is not %t", test.a, test.b, test.want)
		}
	}
}

func TestGCSOrder(t *testing.T) {
	seq := func(t *rapid.T, eventType string, generation uint64) event.Sequencer {
		b, err := event.Parse(fmt.Appendf(nil, `{"message":{"attributes":{"eventType":%q,"bucketId":"b",`+
			`"objectId":"k","objectGeneration":"%d"}}}`, eventType, generation), event.GCS)
		if err != nil {
			t.Fatal(err)
		}
		return b.Events[0].Sequencer
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(0, 1<<63).Draw(t, "generation")
		next := n + rapid.Uint64Range(1, 1<<20).Draw(t, "step")
		order := []event.Sequencer{
			seq(t, "OBJECT_FINALIZE", n), seq(t, "OBJECT_ARCHIVE", n), seq(t, "OBJECT_DELETE", n),
			seq(t, "OBJECT_FINALIZE", next), seq(t, "OBJECT_ARCHIVE", next), seq(t, "OBJECT_DELETE", next),
		}
		for i := range order[1:] {
			if order[i].CompareSameKey(order[i+1]) != -1 {
				t.Fatalf("%s is not older than %s", order[i], order[i+1])
			}
			if !order[i].SameShape(order[i+1]) {
				t.Fatalf("%s does not have the same shape as %s", order[i], order[i+1])
			}
		}
	})
}

func TestCephOrder(t *testing.T) {
	seq := func(t *rapid.T, at uint64) event.Sequencer {
		var memory [8]byte
		binary.LittleEndian.PutUint32(memory[:4], uint32(at/1e9))
		binary.LittleEndian.PutUint32(memory[4:], uint32(at%1e9))
		b, err := event.Parse(fmt.Appendf(nil, `{"Records":[{"eventVersion":"2.2","eventName":"ObjectCreated:Put",`+
			`"s3":{"bucket":{"name":"b"},"object":{"key":"k","sequencer":"%X"}}}]}`, memory), event.Ceph)
		if err != nil {
			t.Fatal(err)
		}
		return b.Events[0].Sequencer
	}
	rapid.Check(t, func(t *rapid.T) {
		instant := rapid.Uint64Range(1, 4e18) // nanoseconds until 2096
		a, b := instant.Draw(t, "a"), instant.Draw(t, "b")
		if got := seq(t, a).CompareSameKey(seq(t, b)); got != cmp.Compare(a, b) {
			t.Fatalf("%d compared with %d ns is %d", a, b, got)
		}
	})
}
