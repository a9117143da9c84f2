// Package lambdasource delivers the notifications in the payload of one invocation of AWS
// Lambda: from a queue of SQS, or directly from S3, SNS or EventBridge.
//
// https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html
package lambdasource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/aws/aws-lambda-go/events"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/source"
)

// Config configures a source. The zero value is usable.
type Config struct {
	Dialect        event.Dialect // of the notifications; default [event.Detect]
	TrustSequencer bool          // see [source.Delivery]
	Logger         *slog.Logger  // default slog.Default()
}

// Source is the payload of one invocation. Run returns when it has delivered every message.
type Source struct {
	cfg      Config
	messages []*message
	isQueue  bool // the payload is from SQS, so the response lists failed messages
	fifo     bool

	mu sync.Mutex // guards the outcomes in messages
}

type message struct {
	source.Message
	body         string
	acknowledged bool
	err          error // why not
}

// ErrPayload is returned for a payload that is not an event of SQS, S3, SNS or EventBridge.
var ErrPayload = errors.New("the invocation's payload is not an event of SQS, S3, SNS or EventBridge")

var errUnanswered = errors.New("the invocation ended before the ledger had stored the notification")

// New returns the source for a payload. Its error matches [ErrPayload].
func New(payload []byte, cfg Config) (*Source, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	s := &Source{cfg: cfg}
	var top struct {
		Records []struct {
			EventSource string `json:"eventSource"` // encoding/json ignores case: SNS writes EventSource
		}
	}
	if err := json.Unmarshal(payload, &top); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPayload, err)
	}
	origin := ""
	if len(top.Records) > 0 {
		origin = top.Records[0].EventSource
	}
	switch origin {
	case "aws:sqs":
		return s, s.readQueue(payload)
	case "aws:sns":
		return s, s.readTopic(payload)
	}
	s.messages = []*message{{Message: source.Message{System: "aws_lambda"}, body: string(payload)}}
	if _, err := event.Parse(payload, cfg.Dialect); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPayload, err)
	}
	return s, nil
}

func (s *Source) readQueue(payload []byte) error {
	var in events.SQSEvent
	if err := json.Unmarshal(payload, &in); err != nil {
		return fmt.Errorf("%w: %w", ErrPayload, err)
	}
	s.isQueue = true
	for i := range in.Records {
		r := &in.Records[i]
		if r.MessageId == "" {
			return fmt.Errorf("%w: record %d has no messageId", ErrPayload, i)
		}
		s.fifo = s.fifo || strings.HasSuffix(r.EventSourceARN, ".fifo")
		m := source.Message{System: "aws_sqs", Destination: nameOf(r.EventSourceARN), ID: r.MessageId}
		if a := r.MessageAttributes["traceparent"].StringValue; a != nil {
			m.Traceparent = *a
		}
		s.messages = append(s.messages, &message{Message: m, body: r.Body})
	}
	return nil
}

// nameOf returns the last part of the ARN of a queue or topic.
func nameOf(arn string) string { return arn[strings.LastIndexByte(arn, ':')+1:] }

func (s *Source) readTopic(payload []byte) error {
	var in events.SNSEvent
	if err := json.Unmarshal(payload, &in); err != nil {
		return fmt.Errorf("%w: %w", ErrPayload, err)
	}
	for i := range in.Records {
		sns := &in.Records[i].SNS
		s.messages = append(s.messages, &message{Message: source.Message{System: "aws.sns", Destination: nameOf(sns.TopicArn), ID: sns.MessageID}, body: sns.Message})
	}
	return nil
}

// Declares implements [source.Declarer].
func (s *Source) Declares() (event.Dialect, bool) { return s.cfg.Dialect, s.cfg.TrustSequencer }

// Run implements [source.Source]. It reports a message that cannot be read as failed.
func (s *Source) Run(ctx context.Context, sink source.Sink) error {
	for _, m := range s.messages {
		if err := s.deliver(ctx, m, sink); err != nil {
			return err
		}
	}
	return nil
}

func (s *Source) deliver(ctx context.Context, m *message, sink source.Sink) error {
	batch, err := event.Parse([]byte(m.body), s.cfg.Dialect)
	if err != nil || len(batch.Events) == 0 {
		s.answer(m, source.Outcome{Ack: err == nil, Err: err})
		return nil
	}
	err = sink.Deliver(ctx, source.Delivery{
		Events: batch.Events, Message: m.Message, TrustSequencer: s.cfg.TrustSequencer,
		Done: func(o source.Outcome) { s.answer(m, o) },
	})
	switch {
	case errors.Is(err, source.ErrUntrusted):
		s.answer(m, source.Outcome{Err: err})
		return nil
	case ctx.Err() != nil, errors.Is(err, source.ErrClosed):
		return nil // this message and all later ones fail
	}
	return err
}

func (s *Source) answer(m *message, o source.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.acknowledged, m.err = o.Ack, o.Err
}

// Response returns the response of the invocation. For a queue, it lists the messages that SQS must deliver
// again. In a FIFO queue, these include all messages after the first one without an acknowledgement. For
// other payloads, an unacknowledged message is an error, so that Lambda invokes the function again. Call
// Response after the sink has reported every outcome.
func (s *Source) Response(ctx context.Context) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}} // nil would be null
	var failed error
	for _, m := range s.messages {
		if m.acknowledged && !(s.fifo && failed != nil) {
			continue
		}
		if !m.acknowledged && m.err == nil {
			m.err = errUnanswered
		}
		if failed == nil {
			failed = m.err
		}
		s.log(ctx, m)
		out.BatchItemFailures = append(out.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.ID})
	}
	if !s.isQueue {
		return []byte("null"), failed
	}
	return json.Marshal(out)
}

const maxLogged = 200

func (s *Source) log(ctx context.Context, m *message) {
	var unreadable *event.ParseError
	switch {
	case errors.As(m.err, &unreadable):
		s.cfg.Logger.ErrorContext(ctx, "a message cannot be read; the queue's redrive policy decides when it moves to the dead-letter queue",
			"message_id", m.ID, "error", m.err, "bytes", len(m.body), "payload", event.Quote(m.body[:min(maxLogged, len(m.body))]))
	case m.err != nil:
		s.cfg.Logger.InfoContext(ctx, "a message was not acknowledged and will be redelivered", "message_id", m.ID, "reason", m.err)
	}
}
