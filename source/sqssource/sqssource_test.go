package sqssource_test

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/source/sourcetest"
	"github.com/pawlhq/pawl/source/sqssource"
)

type queue struct {
	*servertest.Queues
	url string
}

func newQueue(t *testing.T, server *servertest.Queues, attributes map[string]string) *queue {
	t.Helper()
	return &queue{server, server.NewQueue(t, attributes)}
}

func credentials(t *testing.T) {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "pawl")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "pawl")
	t.Setenv("AWS_CONFIG_FILE", "/nonexistent")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
}

func (q *queue) send(t *testing.T, bodies ...string) {
	t.Helper()
	for _, body := range bodies {
		if _, err := q.Client().SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &q.url, MessageBody: &body}); err != nil {
			t.Fatal(err)
		}
	}
}

func (q *queue) count(ctx context.Context) (visible, held int, err error) {
	out, err := q.Client().GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &q.url, AttributeNames: []types.QueueAttributeName{
			types.QueueAttributeNameApproximateNumberOfMessages, types.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
		},
	})
	if err != nil {
		return 0, 0, err
	}
	visible, err = strconv.Atoi(out.Attributes[string(types.QueueAttributeNameApproximateNumberOfMessages)])
	if err != nil {
		return 0, 0, err
	}
	held, err = strconv.Atoi(out.Attributes[string(types.QueueAttributeNameApproximateNumberOfMessagesNotVisible)])
	return visible, held, err
}

func (q *queue) wantCount(t *testing.T, visible, held int) {
	t.Helper()
	reached := make(chan struct{})
	var last string
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			v, h, err := q.count(ctx)
			last = fmt.Sprint(v, h, err)
			if err == nil && v == visible && h == held {
				close(reached)
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	defer wg.Wait()
	defer cancel()
	defer func() {
		if t.Failed() {
			t.Logf("%s: messages (visible, held, error) %s, want %d visible and %d held", q.url, last, visible, held)
		}
	}()
	sourcetest.Wait(t, reached, "the queue's messages")
}

type running struct {
	*sqssource.Source
	cancel func()
	ended  <-chan error
}

func run(t *testing.T, cfg sqssource.Config, sink source.Sink, set ...func(*sqssource.Source)) *running {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	src, err := sqssource.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range set {
		f(src)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	var work sync.WaitGroup
	work.Go(func() { ended <- src.Run(ctx, sink) })
	t.Cleanup(func() { cancel(); work.Wait() })
	return &running{src, cancel, ended}
}
