package event_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/pawlhq/pawl/event"
)

func TestLimits(t *testing.T) {
	const open, record = `{"Records":[`, `{"eventVersion":"2.1","eventSource":"aws:s3","eventName":"ObjectTagging:Put"}`
	records := func(n int) string { return open + strings.Repeat(record+",", n-1) + record + "]}" }
	padded := func(n int) string {
		s := records(1)
		return s + strings.Repeat(" ", n-len(s))
	}
	nested := func(n int) string {
		return `{"x":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `,"Records":[` + record + `]}`
	}
	tests := []struct {
		name    string
		payload string
		want    error
	}{
		{"10,000 records", records(event.MaxRecords), nil},
		{"10,001 records", records(event.MaxRecords + 1), event.ErrTooLarge},
		{"1 MiB", padded(event.MaxPayload), nil},
		{"1 MiB and one byte", padded(event.MaxPayload + 1), event.ErrTooLarge},
		{"nested", nested(1000), nil},
		{"nested too deeply", nested(100_000), event.ErrMalformed},
		{"nested arrays only", strings.Repeat(`{"Records":[`, 50_000), event.ErrMalformed},
		{"10,001 blobs", "[" + strings.Repeat(`{"eventType":"Microsoft.Storage.X"},`, event.MaxRecords) + `{}]`, event.ErrTooLarge},
		{"a long duplicate name", `{"` + strings.Repeat("n", 1e5) + `":1,"` + strings.Repeat("n", 1e5) + `":1}`, event.ErrMalformed},
		{"a long event source", `{"Records":[{"eventSource":"` + strings.Repeat("\u202e", 1e5) + `"}]}`, event.ErrUnknownDialect},
		{"a hostile sequencer", strings.ReplaceAll(string(notifications[event.AWS]("k")), "0055AED6DCD90281", `00\u001b[2J\n`), event.ErrMalformed},
		{"a long version", strings.ReplaceAll(string(notifications[event.AWS]("k")), `"sequencer"`, `"versionId":"`+strings.Repeat("v", 2000)+`","sequencer"`), event.ErrMalformed},
		{"invalid UTF-8", "{\"Records\":[{\"eventSource\":\"\xff\"}]}", event.ErrMalformed},
		{"a lone surrogate", `{"Records":[{"eventSource":"\ud800"}]}`, event.ErrMalformed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := event.Parse([]byte(test.payload), event.Detect)
			if !errors.Is(err, test.want) {
				t.Fatalf("got %v, want %v", err, test.want)
			}
			if err != nil {
				checkParseError(t, err)
			}
			// ErrTooLarge is about the whole payload, not about a record.
			if errors.Is(err, event.ErrTooLarge) && strings.Contains(err.Error(), ": record ") {
				t.Errorf("%v names a record", err)
			}
		})
	}
}

func TestTruncatedPayloadIsRejected(t *testing.T) {
	for _, name := range []string{
		"minio-created-put.json", "versitygw-created-put.json", "sns-aws-created-put.json",
		"eventbridge-created.json", "r2-copied.json", "gcs-finalize.json", "azure-eventgrid.json",
	} {
		payload := []byte(strings.TrimSpace(string(readSample(t, name))))
		for n := range len(payload) {
			_, err := event.Parse(payload[:n], event.Detect)
			if !errors.Is(err, event.ErrMalformed) {
				t.Errorf("%s truncated after %d bytes: %v", name, n, err)
			}
		}
	}
}

func TestErrorHasKindAndCause(t *testing.T) {
	_, err := event.Parse([]byte(`{"Records":[`), event.Detect)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v does not match io.ErrUnexpectedEOF", err)
	}
	if err = (&event.ParseError{Kind: event.ErrMalformed, Record: -1}); !errors.Is(err, event.ErrMalformed) {
		t.Errorf("%v without a cause has no kind", err)
	}
}

func TestErrorsAreShort(t *testing.T) {
	for _, key := range []string{strings.Repeat("k", 2000), strings.Repeat("%00", 2000), "k"} {
		_, err := event.Parse([]byte(`{"Records":[{"eventVersion":"2.1","eventSource":"aws:s3","eventName":"ObjectCreated:Put",`+
			`"s3":{"bucket":{"name":"b"},"object":{"key":"`+key+`","versionId":"v","sequencer":"x"}}}]}`), event.Detect)
		checkParseError(t, err)
		if !strings.Contains(err.Error(), "s3://b/") || !strings.Contains(err.Error(), "sequencer x is not") {
			t.Errorf("error is %q", err)
		}
	}
	object := event.Object{Bucket: "b", Key: strings.Repeat("k", event.MaxKey-len("s3://b/?versionId=v")), VersionID: "v"}
	_, err := event.Parse([]byte(`{"Records":[{"eventVersion":"2.1","eventSource":"aws:s3","eventName":"ObjectCreated:Put",`+
		`"s3":{"bucket":{"name":"b"},"object":{"key":"`+object.Key+`","versionId":"v","sequencer":"x"}}}]}`), event.Detect)
	if !strings.Contains(err.Error(), object.String()) {
		t.Errorf("error is %q, without the whole name, which has the maximum length", err)
	}
}

func TestPayloadIsNotRetained(t *testing.T) {
	payload := readSample(t, "minio-created-put.json")
	want, err := event.Parse(payload, event.Detect)
	if err != nil {
		t.Fatal(err)
	}
	buffer := append([]byte(nil), payload...)
	got, err := event.Parse(buffer, event.Detect)
	if err != nil {
		t.Fatal(err)
	}
	clear(buffer)
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(), compareSequencers); diff != "" {
		t.Error(diff)
	}
}

var compareSequencers = cmp.Comparer(func(a, b event.Sequencer) bool {
	return a.String() == b.String() && a.Raw() == b.Raw()
})
