package lambdasource_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/source/lambdasource"
	"github.com/pawlhq/pawl/source/sourcetest"
)

type sink struct {
	ack, silent string
	room        int
	keys        []string
}

func (s *sink) Deliver(_ context.Context, d source.Delivery) error {
	if len(s.keys) == s.room {
		return source.ErrClosed
	}
	key := d.Events[0].Object.Key
	s.keys = append(s.keys, key)
	switch {
	case strings.Contains(s.silent, key):
	case strings.Contains(s.ack, key):
		d.Done(source.Outcome{Ack: true})
	default:
		d.Done(source.Outcome{Err: errors.New("busy")})
	}
	return nil
}

func (s *sink) TryDeliver(d source.Delivery) error { return s.Deliver(context.Background(), d) }

func queue(t *testing.T, arn string, bodies ...string) []byte {
	t.Helper()
	var in events.SQSEvent
	for i, body := range bodies {
		in.Records = append(in.Records, events.SQSMessage{MessageId: "m" + string(rune('0'+i)), EventSource: "aws:sqs", EventSourceARN: arn, Body: body})
	}
	return marshal(t, in)
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const eventBridge = `{"version":"0","id":"1","detail-type":"Object Created","source":"aws.s3","account":"123456789012","time":"2026-01-02T03:04:05Z","region":"eu-west-1","resources":[],
	"detail":{"version":"0","bucket":{"name":"photos"},"object":{"key":"a","size":3,"etag":"764efa883dda1e11db47671c4a3bbd9e","sequencer":"0055AED6DCD90281E5"},"request-id":"r","requester":"123456789012","reason":"PutObject"}}`

func TestResponses(t *testing.T) {
	a, b, c := sourcetest.Payload("a"), sourcetest.Payload("b"), sourcetest.Payload("c")
	test := `{"Service":"Amazon S3","Event":"s3:TestEvent","Time":"2026-01-02T03:04:05.000Z","Bucket":"photos","RequestId":"r","HostId":"h"}`
	const standard, fifo = "arn:aws:sqs:eu-west-1:123456789012:q", "arn:aws:sqs:eu-west-1:123456789012:q.fifo"
	sns := marshal(t, events.SNSEvent{Records: []events.SNSEventRecord{{EventSource: "aws:sns", SNS: events.SNSEntity{MessageID: "n", Message: a}}}})
	failures := func(ids ...string) string {
		out := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
		for _, id := range ids {
			out.BatchItemFailures = append(out.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: id})
		}
		return string(marshal(t, out))
	}
	for name, test := range map[string]struct {
		payload []byte
		sink    sink
		keys    string
		want    string // or the error
	}{
		"all are acknowledged":       {queue(t, standard, a, b), sink{ack: "ab", room: 9}, "ab", `{"batchItemFailures":[]}`},
		"one fails":                  {queue(t, standard, a, b, c), sink{ack: "ac", room: 9}, "abc", failures("m1")},
		"one gets no answer":         {queue(t, standard, a, b, c), sink{ack: "ac", silent: "b", room: 9}, "abc", failures("m1")},
		"the sink closes":            {queue(t, standard, a, b, c), sink{ack: "abc", room: 1}, "a", failures("m1", "m2")},
		"one cannot be read":         {queue(t, standard, "{", a, "[]"), sink{ack: "a", room: 9}, "a", failures("m0", "m2")},
		"test events":                {queue(t, standard, test), sink{}, "", `{"batchItemFailures":[]}`},
		"an envelope of SNS":         {queue(t, standard, string(marshal(t, map[string]string{"Type": "Notification", "MessageId": "n", "TopicArn": "arn:aws:sns:eu-west-1:123456789012:t", "Message": a}))), sink{ack: "a", room: 9}, "a", `{"batchItemFailures":[]}`},
		"EventBridge in the queue":   {queue(t, standard, eventBridge), sink{ack: "a", room: 9}, "a", `{"batchItemFailures":[]}`},
		"FIFO, after a failure":      {queue(t, fifo, a, b, c), sink{ack: "ac", room: 9}, "abc", failures("m1", "m2")},
		"FIFO, all are acknowledged": {queue(t, fifo, a, b, c), sink{ack: "abc", room: 9}, "abc", `{"batchItemFailures":[]}`},
		"S3":                         {[]byte(a), sink{ack: "a", room: 9}, "a", "null"},
		"S3, not acknowledged":       {[]byte(a), sink{room: 9}, "a", "busy"},
		"S3, without an answer":      {[]byte(a), sink{silent: "a", room: 9}, "a", "the invocation ended before the ledger had stored the notification"},
		"SNS":                        {sns, sink{ack: "a", room: 9}, "a", "null"},
		"SNS, not acknowledged":      {sns, sink{room: 9}, "a", "busy"},
		"EventBridge":                {[]byte(eventBridge), sink{ack: "a", room: 9}, "a", "null"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := lambdasource.New(test.payload, lambdasource.Config{Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Run(t.Context(), &test.sink); err != nil {
				t.Fatal(err)
			}
			got, err := s.Response(t.Context())
			said := string(got)
			if err != nil {
				said = err.Error()
			}
			if keys := strings.Join(test.sink.keys, ""); said != test.want || keys != test.keys {
				t.Errorf("delivered %s and returned %s, want %s and %s", keys, said, test.keys, test.want)
			}
		})
	}
}

func TestPayloadsOfOtherServices(t *testing.T) {
	for _, payload := range []string{
		``, `null`, `{}`, `[]`, `"text"`, `{"Records":[]}`, `{"Records":[{"eventSource":"aws:kinesis"}]}`,
		`{"Records":[{"eventSource":"aws:sqs","body":"{}"}]}`, `{"Records":7}`, `{"Records":[{"eventSource":"aws:sqs","messageId":7}]}`,
		strings.Repeat("[", 100_000),
	} {
		if _, err := lambdasource.New([]byte(payload), lambdasource.Config{}); !errors.Is(err, lambdasource.ErrPayload) {
			t.Errorf("%.40s: %v", payload, err)
		}
	}
}

func TestUnreadableMessageIsLogged(t *testing.T) {
	var log bytes.Buffer
	s, err := lambdasource.New(queue(t, "", strings.Repeat("x", 1<<20)), lambdasource.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context(), &sink{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Response(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := log.String(); !strings.Contains(got, "message_id=m0") || !strings.Contains(got, "level=ERROR") || len(got) > 1000 {
		t.Errorf("%d bytes: %.300s", len(got), got)
	}
}

func FuzzPayload(f *testing.F) {
	f.Add([]byte(eventBridge))
	f.Add([]byte(sourcetest.Payload("a")))
	f.Add([]byte(`{"Records":[{"eventSource":"aws:sqs","messageId":"m","body":"{}"}]}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		s, err := lambdasource.New(payload, lambdasource.Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return
		}
		k := &sink{room: 1 << 20}
		if err := s.Run(t.Context(), k); err != nil {
			t.Fatal(err)
		}
		out, err := s.Response(t.Context())
		if err == nil && string(out) == "null" && len(k.keys) > 0 {
			t.Errorf("%d events were not acknowledged, and the invocation succeeded: %s", len(k.keys), cmp.Diff("", string(payload)))
		}
	})
}
