package event_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/event"
	"pgregory.net/rapid"
)

// Each function writes the key as its store does: encoded for AWS and MinIO, raw for the others.
var notifications = map[event.Dialect]func(key string) []byte{
	event.AWS:       func(key string) []byte { return s3Records("aws:s3", "ObjectCreated:Put", key) },
	event.MinIO:     func(key string) []byte { return s3Records("minio:s3", "s3:ObjectCreated:Put", key) },
	event.VersityGW: func(key string) []byte { return s3Records("aws:s3", "s3:ObjectCreated:Put", key) },
	event.Ceph:      func(key string) []byte { return s3Records("ceph:s3", "ObjectCreated:Put", key) },
	event.EventBridge: func(key string) []byte {
		return fmt.Appendf(nil, `{"detail-type":"Object Created","source":"aws.s3","detail":`+
			`{"bucket":{"name":"b"},"object":{"key":%s,"sequencer":"617f08299329d189"}}}`, quoteJSON(key))
	},
	event.R2: func(key string) []byte {
		return fmt.Appendf(nil, `{"action":"PutObject","bucket":"b","object":{"key":%s}}`, quoteJSON(key))
	},
	event.GCS: func(key string) []byte {
		return fmt.Appendf(nil, `{"message":{"attributes":{"eventType":"OBJECT_FINALIZE","bucketId":"b",`+
			`"objectId":%s,"objectGeneration":"1618848161894414"}}}`, quoteJSON(key))
	},
	event.Azure: func(key string) []byte {
		return fmt.Appendf(nil, `[{"eventType":"Microsoft.Storage.BlobCreated","subject":%s,`+
			`"data":{"sequencer":"00000000000004420000000000028963"}}]`,
			quoteJSON("/blobServices/default/containers/b/blobs/"+key))
	},
}

func s3Records(source, name, key string) []byte {
	return fmt.Appendf(nil, `{"Records":[{"eventVersion":"2.1","eventSource":%q,"eventName":%q,"s3":`+
		`{"bucket":{"name":"b"},"object":{"key":%s,"sequencer":"0055AED6DCD90281"}}}]}`,
		source, name, quoteJSON(key))
}

func quoteJSON(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func encodes(d event.Dialect) bool { return d == event.AWS || d == event.MinIO }

func parseKey(t interface{ Fatalf(string, ...any) }, d event.Dialect, written string) string {
	b, err := event.Parse(notifications[d](written), event.Detect)
	if err != nil {
		t.Fatalf("%s: key %q: %v", d, written, err)
	}
	if b.Dialect != d || len(b.Events) != 1 || b.Events[0].Dialect != d {
		t.Fatalf("%s: key %q: parsed as %+v", d, written, b)
	}
	return b.Events[0].Object.Key
}

func TestKeyIsDecodedExactlyOnce(t *testing.T) {
	tests := []struct{ written, encoded, raw string }{
		{"a+b%2Bc%2F%C3%A9.txt", "a b+c/é.txt", "a+b%2Bc%2F%C3%A9.txt"},
		{"a b+c/é.txt", "a b c/é.txt", "a b+c/é.txt"},
		{"%252B", "%2B", "%252B"},
		{"%2B", "+", "%2B"},
		{"..%2F..%2Fetc%2Fpasswd", "../../etc/passwd", "..%2F..%2Fetc%2Fpasswd"},
		{"../../etc/passwd", "../../etc/passwd", "../../etc/passwd"},
		{"%2Fleading", "/leading", "%2Fleading"},
		{"/leading//double/", "/leading//double/", "/leading//double/"},
		{"line%0Afeed%00", "line\nfeed\x00", "line%0Afeed%00"},
		{"line\nfeed\x00", "line\nfeed\x00", "line\nfeed\x00"},
		{"%FF%C3", "\xff\xc3", "%FF%C3"},
		{"%e2%80%ae", "\u202e", "%e2%80%ae"},
		{"+", " ", "+"},
		{strings.Repeat("k", 1024), strings.Repeat("k", 1024), strings.Repeat("k", 1024)},
	}
	for _, test := range tests {
		for d := range notifications {
			want := test.raw
			if encodes(d) {
				want = test.encoded
			}
			if got := parseKey(t, d, test.written); got != want {
				t.Errorf("%s: key written %q is %q, want %q", d, test.written, got, want)
			}
		}
	}
}

func TestKeyLimit(t *testing.T) {
	long := strings.Repeat("é", 512)
	if got := parseKey(t, event.MinIO, url.QueryEscape(long)); got != long {
		t.Errorf("key of 1024 bytes is %q", got)
	}
	for d := range notifications {
		_, err := event.Parse(notifications[d](long+"x"), event.Detect)
		if !errors.Is(err, event.ErrMalformed) {
			t.Errorf("%s: key of 1025 bytes: %v", d, err)
		}
	}
}

func TestBadEscapes(t *testing.T) {
	for _, written := range []string{"%", "a%2", "%zz", "100% sure", "%%41"} {
		for d := range notifications {
			if encodes(d) {
				_, err := event.Parse(notifications[d](written), event.Detect)
				if !errors.Is(err, event.ErrMalformed) {
					t.Errorf("%s: key written %q: %v, want ErrMalformed", d, written, err)
				}
			} else if got := parseKey(t, d, written); got != written {
				t.Errorf("%s: key written %q is %q", d, written, got)
			}
		}
	}
}

func TestEveryKeyIsRestored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := string(rapid.SliceOfN(rapid.Byte(), 1, 300).Draw(t, "key"))
		if got := parseKey(t, event.MinIO, url.QueryEscape(key)); got != key {
			t.Fatalf("MinIO: %q became %q", key, got)
		}
		aws := strings.ReplaceAll(url.QueryEscape(key), "%2F", "/")
		if got := parseKey(t, event.AWS, aws); got != key {
			t.Fatalf("AWS: %q became %q", key, got)
		}
		text := strings.ToValidUTF8(key, "?")
		for d := range notifications {
			if encodes(d) {
				continue
			}
			if got := parseKey(t, d, text); got != text {
				t.Fatalf("%s: %q became %q", d, text, got)
			}
		}
	})
}
