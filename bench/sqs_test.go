package bench

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/servertest"
	"github.com/pawlhq/pawl/ledger/sqliteledger"
	"github.com/pawlhq/pawl/source/sqssource"
)

var messages = flag.Int("messages", 20_000, "messages in a queue of BenchmarkSQS")

// BenchmarkSQS empties queues of new objects' notifications on one ElasticMQ: by a
// loop that does nothing but receive and delete, and by Pawl with a ledger in
// SQLite and a handler that does nothing. The ratio is what Pawl leaves of the
// server's speed.
func BenchmarkSQS(b *testing.B) {
	b.Setenv("AWS_ACCESS_KEY_ID", "pawl")
	b.Setenv("AWS_SECRET_ACCESS_KEY", "pawl")
	server := servertest.ElasticMQ(b)
	timed(b, server, emptyBare) // the server's own compiler takes its time
	var bare, all time.Duration
	for b.Loop() {
		bare += timed(b, server, emptyBare)
		all += timed(b, server, emptyByPawl)
	}
	rate := func(d time.Duration) float64 { return float64(b.N**messages) / d.Seconds() }
	b.ReportMetric(rate(bare), "bare/s")
	b.ReportMetric(rate(all), "pawl/s")
	b.ReportMetric(bare.Seconds()/all.Seconds(), "ratio")
	b.ReportMetric(0, "ns/op")
}

// timed fills a new queue and returns how long it takes to empty it.
func timed(b *testing.B, server *servertest.Queues, empty func(*testing.B, *servertest.Queues, string)) time.Duration {
	b.Helper()
	url := server.NewQueue(b, nil)
	fill(b, server, url)
	start := time.Now()
	empty(b, server, url)
	return time.Since(start)
}

// senders and receivers are as many as Pawl has.
const parallel = 8

func fill(b *testing.B, server *servertest.Queues, url string) {
	b.Helper()
	client, payload := server.Client(), awsPayload(b, 1)
	var next atomic.Int64
	each(b, func(ctx context.Context) error {
		for {
			from := int(next.Add(10)) - 10
			if from >= *messages {
				return nil
			}
			in := &sqs.SendMessageBatchInput{QueueUrl: &url}
			for i := from; i < min(from+10, *messages); i++ {
				body := bytes.Replace(payload, []byte("a+b-0000"), fmt.Appendf(nil, "a+b-%08d", i), 1)
				in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(string(body))})
			}
			if out, err := client.SendMessageBatch(ctx, in); err != nil || len(out.Failed) > 0 {
				return fmt.Errorf("filling the queue: %w", err)
			}
		}
	})
}

// each runs f several times at once.
func each(b *testing.B, f func(context.Context) error) {
	b.Helper()
	var wg sync.WaitGroup
	for range parallel {
		wg.Go(func() {
			if err := f(b.Context()); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
}

func emptyBare(b *testing.B, server *servertest.Queues, url string) {
	client := server.Client()
	var done atomic.Int64
	each(b, func(ctx context.Context) error {
		for int(done.Load()) < *messages {
			out, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10})
			if err != nil {
				return err
			}
			if len(out.Messages) == 0 {
				continue
			}
			in := &sqs.DeleteMessageBatchInput{QueueUrl: &url}
			for i, m := range out.Messages {
				in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle})
			}
			if _, err := client.DeleteMessageBatch(ctx, in); err != nil {
				return err
			}
			done.Add(int64(len(out.Messages)))
		}
		return nil
	})
}

func emptyByPawl(b *testing.B, _ *servertest.Queues, url string) {
	led, err := sqliteledger.Open(b.Context(), filepath.Join(b.TempDir(), "pawl.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = led.Close() }()
	quiet := slog.New(slog.DiscardHandler)
	src, err := sqssource.New(b.Context(), sqssource.Config{URL: url, Dialect: event.AWS, Logger: quiet})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	var handled atomic.Int64
	p, err := pawl.New(pawl.Config{
		Ledger: led, Sources: []pawl.Source{src}, Logger: quiet,
		Pipelines: []pawl.Pipeline{{
			Name: "nothing", Match: pawl.Match{Bucket: "amzn-s3-demo-bucket"}, Order: pawl.EventOrder,
			Handler: pawl.HandlerFunc(func(context.Context, *pawl.Task) error {
				if int(handled.Add(1)) == *messages {
					cancel()
				}
				return nil
			}),
		}},
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := p.Run(ctx); err != nil {
		b.Fatal(err)
	}
}
