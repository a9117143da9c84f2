//go:build unix

package e2e

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/pawlhq/pawl/proof/servertest"
)

// The messages of a killed worker are redelivered after their visibility timeout.
func TestQueueKills(t *testing.T) {
	servertest.Long(t)
	t.Parallel()
	binary := build(t)
	total := &counts{}
	runRounds(t, total, func(t *testing.T, seed uint64) *round {
		return newRound(t, servertest.MinIO, binary, seed, newQueues(t, 2))
	})
	if *rounds > 1 {
		t.Logf("total:\n%s", total)
	}
}

// Nil means no queues.
type queues struct {
	server      *servertest.Queues
	client      *sqs.Client
	urls        []string
	lastVisible atomic.Int64
}

func newQueues(t *testing.T, n int) *queues {
	t.Helper()
	server := servertest.ElasticMQ(t)
	q := &queues{server: server, client: server.Client()}
	for range n {
		q.urls = append(q.urls, server.NewQueue(t, nil))
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	wg.Go(func() { q.watch(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	return q
}

func (q *queues) addresses() []string { return q.urls }

func (q *queues) sources() string {
	if q == nil {
		return ""
	}
	var b strings.Builder
	for _, url := range q.urls {
		fmt.Fprintf(&b, "  - sqs: {url: %q}\n", url)
	}
	return b.String()
}

func (q *queues) send(ctx context.Context, body []byte, url string) error {
	_, err := q.client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String(string(body))})
	return err
}

// Messages of killed workers are not visible.
func (q *queues) visible() int {
	if q == nil {
		return 0
	}
	return int(q.lastVisible.Load())
}

func (q *queues) watch(ctx context.Context) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if n, err := q.count(ctx, types.QueueAttributeNameApproximateNumberOfMessages); err == nil {
			q.lastVisible.Store(int64(n))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (q *queues) total(ctx context.Context) (int, error) {
	if q == nil {
		return 0, nil
	}
	return q.count(ctx, types.QueueAttributeNameApproximateNumberOfMessages, types.QueueAttributeNameApproximateNumberOfMessagesNotVisible)
}

func (q *queues) count(ctx context.Context, names ...types.QueueAttributeName) (n int, err error) {
	for _, url := range q.urls {
		out, err := q.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: names})
		if err != nil {
			return 0, err
		}
		for _, name := range names {
			some, err := strconv.Atoi(out.Attributes[string(name)])
			if err != nil {
				return 0, err
			}
			n += some
		}
	}
	return n, nil
}
