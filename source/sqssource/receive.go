package sqssource

import (
	"context"
	"errors"
	"path"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"golang.org/x/sync/errgroup"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/source"
)

func (f *inFlight) receive(ctx context.Context) error {
	receivers, ctx := errgroup.WithContext(ctx)
	receivers.SetLimit(f.limits.receivers)
	receivers.Go(func() error { return f.receiver(ctx, receivers, true) })
	return receivers.Wait()
}

// After a full batch it starts another receiver. All receivers but the first stop when the queue is empty.
func (f *inFlight) receiver(ctx context.Context, receivers *errgroup.Group, first bool) error {
	pause := newBackOff()
	for {
		messages, err := f.poll(ctx)
		if err != nil {
			if ctx.Err() == nil && classify(err) != transientError && !f.reached.Load() {
				return f.explain(err)
			}
			if !first || !f.backOff(ctx, pause, err) {
				return nil
			}
			continue
		}
		f.reached.Store(true)
		pause.Reset()
		if len(messages) == 0 && !first {
			return nil
		}
		if len(messages) == batch {
			receivers.TryGo(func() error { return f.receiver(ctx, receivers, false) })
		}
		if err := f.deliver(ctx, messages); err != nil {
			return err
		}
	}
}

// batch is SQS's maximum number of messages in one request.
const batch = 10

type received struct {
	*message
	body, traceparent string
}

// The returned messages are renewed until they have an outcome.
func (f *inFlight) poll(ctx context.Context) ([]received, error) {
	if err := f.slots.Acquire(ctx, batch); err != nil {
		return nil, err
	}
	call, cancel := context.WithTimeout(ctx, f.limits.poll+f.limits.call)
	defer cancel()
	out, err := f.client.ReceiveMessage(call, &sqs.ReceiveMessageInput{
		QueueUrl: &f.cfg.URL, MaxNumberOfMessages: batch, MessageAttributeNames: []string{"traceparent"},
		WaitTimeSeconds: seconds(f.limits.poll), VisibilityTimeout: seconds(f.limits.visibility),
	})
	if err != nil {
		f.slots.Release(batch)
		return nil, err
	}
	f.slots.Release(int64(batch - len(out.Messages)))
	now := time.Now()
	messages := make([]received, len(out.Messages))
	for i, m := range out.Messages {
		messages[i] = received{
			&message{id: aws.ToString(m.MessageId), handle: aws.ToString(m.ReceiptHandle), receivedAt: now, hiddenUntil: now.Add(f.limits.visibility)},
			aws.ToString(m.Body), aws.ToString(m.MessageAttributes["traceparent"].StringValue),
		}
		f.add(messages[i].message)
	}
	return messages, nil
}

// deliver releases the messages that the sink does not accept.
func (f *inFlight) deliver(ctx context.Context, messages []received) error {
	for i, m := range messages {
		err := ctx.Err()
		if err == nil {
			err = f.deliverOne(ctx, m)
		}
		if err == nil {
			continue
		}
		for _, m := range messages[i:] {
			f.queueAnswer(m.message, releaseNow)
		}
		return err
	}
	return nil
}

func (f *inFlight) deliverOne(ctx context.Context, m received) error {
	parsed, err := event.Parse([]byte(m.body), f.cfg.Dialect)
	switch {
	case err != nil:
		f.leaveUnreadable(ctx, m, err)
		return nil
	case parsed.Test:
		f.cfg.Logger.InfoContext(ctx, "received a test message or a subscription request; confirm a subscription at the sender", "queue", f.cfg.URL)
	}
	if len(parsed.Events) == 0 {
		f.queueAnswer(m.message, deleteMessage)
		return nil
	}
	err = f.sink.Deliver(ctx, source.Delivery{
		Events:  parsed.Events,
		Message: source.Message{System: "aws_sqs", Destination: path.Base(f.cfg.URL), ID: m.id, Traceparent: m.traceparent},
		Done:    func(o source.Outcome) { f.done(m.message, o) },
	})
	if errors.Is(err, source.ErrUntrusted) {
		f.leaveUnreadable(ctx, m, err)
		return nil
	}
	return err
}

const maxLogged = 200

func (f *inFlight) leaveUnreadable(ctx context.Context, m received, err error) {
	f.warnings.unreadable.Log(ctx, "a message cannot be read and stays in the queue until the redrive policy moves it", "queue", f.cfg.URL,
		"message_id", m.id, "reason", err.Error(), "bytes", len(m.body), "payload", event.Quote(m.body[:min(maxLogged, len(m.body))]))
	f.reject(source.Unreadable)
	f.drop(m.message)
}
