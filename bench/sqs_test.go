package bench

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
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
	"github.com/pawlhq/pawl/bucket/s3bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/toolcache"
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/source/sqssource"
	"github.com/pawlhq/pawl/store/sqlite"
)

var messages = flag.Int("messages", 10_000, "messages per queue of BenchmarkSQS")

// BenchmarkSQS empties queues of notifications on one ElasticMQ: with a loop that only receives and
// deletes, with Bento's aws_s3 input, and with Pawl and an empty handler. Pawl sends a HEAD request
// per object (store) or none (event).
func BenchmarkSQS(b *testing.B) {
	b.Setenv("AWS_ACCESS_KEY_ID", "pawl")
	b.Setenv("AWS_SECRET_ACCESS_KEY", "pawl")
	s := newSQSBench(b)
	bare := &competitor{name: "bare", work: s.timeEmptying(s.bare)}
	bento := &competitor{name: "bento", work: s.timeEmptying(s.bento)}
	store := &competitor{name: "store", work: s.timeEmptying(func(b *testing.B, url string) { s.pawl(b, url, pawl.StoreOrder, 16) })}
	event := &competitor{name: "event", work: s.timeEmptying(func(b *testing.B, url string) { s.pawl(b, url, pawl.EventOrder, 1000) })}
	s.bare(b, s.fill(b)) // warm up the server's JIT compiler
	compare(b, *messages, bare, bento, store, event)
	store.reportRatio(b, bento)
	event.reportRatio(b, bento)
}

type sqsBench struct {
	queues      *servertest.Queues
	client      *sqs.Client
	store       string // URL
	objectReads atomic.Int64
	binary      string // Bento's
}

func newSQSBench(b *testing.B) *sqsBench {
	b.Helper()
	root, err := toolcache.Root()
	if err != nil {
		b.Fatal(err)
	}
	s := &sqsBench{queues: servertest.ElasticMQ(b)}
	s.client = s.queues.Client()
	if s.binary, err = toolcache.Bento.Build(b.Context(), root, os.Stderr); err != nil {
		b.Fatal(err)
	}
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.objectReads.Add(1)
		w.Header().Set("ETag", `"9dd4e461268c8034f5c8564e155c67a6"`)
		w.Header().Set("Last-Modified", "Fri, 02 Jan 2026 03:04:05 GMT")
		_, _ = w.Write([]byte("x")) // fails if the client has disconnected
	}))
	b.Cleanup(store.Close)
	s.store = store.URL
	return s
}

func (s *sqsBench) timeEmptying(empty func(b *testing.B, url string)) func(b *testing.B) time.Duration {
	return func(b *testing.B) time.Duration {
		b.Helper()
		url := s.fill(b)
		start := time.Now()
		empty(b, url)
		return time.Since(start)
	}
}

// parallelRequests is the same as Pawl's.
const parallelRequests = 8

func each(b *testing.B, f func(context.Context) error) {
	b.Helper()
	var wg sync.WaitGroup
	for range parallelRequests {
		wg.Go(func() {
			if err := f(b.Context()); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
}

func (s *sqsBench) fill(b *testing.B) (url string) {
	b.Helper()
	url = s.queues.NewQueue(b, nil)
	payload := awsPayload(b, 1)
	var next atomic.Int64
	each(b, func(ctx context.Context) error {
		for {
			from := int(next.Add(10)) - 10
			if from >= *messages {
				return nil
			}
			in := &sqs.SendMessageBatchInput{QueueUrl: &url}
			for i := from; i < min(from+10, *messages); i++ {
				body := string(bytes.Replace(payload, []byte("a+b-0000"), fmt.Appendf(nil, "a+b-%08d", i), 1))
				in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), MessageBody: &body})
			}
			if out, err := s.client.SendMessageBatch(ctx, in); err != nil || len(out.Failed) > 0 {
				return fmt.Errorf("fill the queue: %w", err)
			}
		}
	})
	return url
}

func (s *sqsBench) bare(b *testing.B, url string) {
	b.Helper()
	var done atomic.Int64
	each(b, func(ctx context.Context) error {
		for int(done.Load()) < *messages {
			out, err := s.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10})
			if err != nil {
				return err
			}
			in := &sqs.DeleteMessageBatchInput{QueueUrl: &url}
			for i, m := range out.Messages {
				in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle})
			}
			if len(in.Entries) == 0 {
				continue
			}
			if _, err := s.client.DeleteMessageBatch(ctx, in); err != nil {
				return err
			}
			done.Add(int64(len(out.Messages)))
		}
		return nil
	})
}

const bentoConfig = `
http: {enabled: false}
logger: {level: ERROR}
input:
  aws_s3:
    region: us-east-1
    endpoint: %[1]s
    force_path_style_urls: true
    credentials: {id: pawl, secret: pawl}
    sqs: {url: "%[2]s", endpoint: "%[3]s"}
output: {drop: {}}
`

// bento runs Bento until it has requested every object. Its start takes only about a second.
func (s *sqsBench) bento(b *testing.B, url string) {
	b.Helper()
	file := filepath.Join(b.TempDir(), "bento.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, bentoConfig, s.store, url, s.queues.Endpoint), 0o600); err != nil {
		b.Fatal(err)
	}
	before := s.objectReads.Load()
	cmd := exec.Command(s.binary, "-c", file)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	servertest.DieWithParent(cmd)
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for s.objectReads.Load()-before < int64(*messages) {
		select {
		case err := <-ended:
			b.Fatalf("Bento ended: %v\n%s", err, &said)
		case <-tick.C:
		}
	}
	_ = cmd.Process.Kill() // undeleted messages do not matter
	<-ended
}

func (s *sqsBench) pawl(b *testing.B, url string, order pawl.Order, concurrency int) {
	b.Helper()
	records, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "pawl.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = records.Close() }()
	quiet := slog.New(slog.DiscardHandler)
	src, err := sqssource.New(b.Context(), sqssource.Config{URL: url, Dialect: event.AWS, Logger: quiet})
	if err != nil {
		b.Fatal(err)
	}
	objects, err := s3bucket.New(b.Context(), s3bucket.Config{Endpoint: s.store, PathStyle: true})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var handled atomic.Int64
	p, err := pawl.New(pawl.Config{
		Ledger: records, Objects: objects, Sources: []pawl.Source{src}, Logger: quiet, Concurrency: concurrency, MaxBacklogEvents: 2000,
		Pipelines: []pawl.Pipeline{{
			Name: "nothing", Match: pawl.Match{Bucket: "amzn-s3-demo-bucket"}, Order: order,
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
