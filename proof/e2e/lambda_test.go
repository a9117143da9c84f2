//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store/dynamo"
)

// Parameters of TestKillsLambda. The full run takes half an hour:
//
//	go test ./proof/e2e -run 'TestKillsLambda$' -timeout 60m -messages 2000 -environments 20 -freeze 60s -longfreezes 5
var (
	messages     = flag.Int("messages", 150, "messages that functions receive")
	environments = flag.Int("environments", 6, "processes of the function")
	freeze       = flag.Duration("freeze", 2*time.Second, "longest freeze of a process between two invocations")
	longFreezes  = flag.Int("longfreezes", 0, "processes that are frozen for ten minutes")
)

// functionTimeout must be shorter than the visibility timeout of the queue.
const functionTimeout = 10 * time.Second

// TestKillsLambda is TestQueueKills with a function of AWS Lambda instead of workers, and a ledger in
// DynamoDB. Processes are also frozen between invocations. SQS delivers a message at most twice; sweeps or
// an audit must recover the rest.
func TestKillsLambda(t *testing.T) {
	servertest.Long(t)
	t.Parallel()
	runLambda(t, 0, func(t *testing.T, _ uint64, table string) (string, *journal) {
		proxy := newDynamoProxy(t, 0, endpointOf(t, table))
		return strings.Replace(table, endpointOf(t, table), proxy.url, 1), newJournal(t, proxy)
	})
}

// The table throttles 30 % of the requests, and executes 5 % without an answer.
func TestKillsLambdaAndWorkers(t *testing.T) {
	servertest.Long(t)
	t.Parallel()
	runLambda(t, 8, func(t *testing.T, seed uint64, table string) (string, *journal) {
		proxy := newDynamoProxy(t, seed, endpointOf(t, table))
		proxy.throttles, proxy.loses = 3, true
		return strings.Replace(table, endpointOf(t, table), proxy.url, 1), newJournal(t, proxy)
	})
}

func endpointOf(t *testing.T, url string) string {
	t.Helper()
	_, endpoint, ok := strings.Cut(url, "endpoint=")
	if !ok {
		t.Fatalf("%s has no endpoint", url)
	}
	return endpoint
}

func runLambda(t *testing.T, workers int, front func(t *testing.T, seed uint64, table string) (string, *journal)) {
	t.Helper()
	seed := *firstSeed
	if seed == 0 {
		seed = rand.Uint64N(1 << 40)
	}
	t.Logf("repeat with: go test ./proof/e2e -run '%s$' -messages %d -environments %d -seed %d", t.Name(), *messages, *environments, seed)
	binary := build(t)
	direct := newTable(t, servertest.DynamoDB(t), binary)
	records, err := dynamo.Open(t.Context(), direct)
	if err != nil {
		t.Fatal(err)
	}
	table, journal := front(t, seed, direct)
	q := newQueues(t, 1)
	m := &eventSourceMapping{queues: q, messages: int64(*messages), dead: newDeadLetters(t, q), rng: rand.New(rand.NewPCG(seed, 7))}
	if workers > 0 {
		m.messages /= 3
	}
	r := newRoundOn(t, servertest.MinIO, binary, seed, q, workers, &testLedger{table, ledger.NewRows(records), journal})
	m.Function = lambdaOf(t, r)
	m.run(t, r)
	r.check(t)
	t.Logf("%d messages in %d invocations, %d killed, %d cold starts (median %v), %d dead letters, at most %d MiB of memory",
		m.received.Load(), m.Invocations.Load(), m.Killed.Load(), m.ColdStarts.Load(), m.MedianStart(), m.deadLetters, m.Memory.Load()>>20)
}

func lambdaOf(t *testing.T, r *round) *servertest.Function {
	t.Helper()
	raw, err := os.ReadFile(r.fleet.config)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(raw), "sources:")
	_, pipelines, _ := strings.Cut(rest, "pipelines:")
	return newFunction(t, r.fleet.binary, before+"lambda: {sweep: scheduled}\npipelines:"+pipelines, r.fleet.env)
}

func newFunction(t *testing.T, binary, config string, env []string) *servertest.Function {
	t.Helper()
	dir := t.TempDir()
	log, err := os.Create(filepath.Join(dir, "lambda.log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	file := filepath.Join(dir, "pawl.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return &servertest.Function{Program: binary, Log: log, Timeout: functionTimeout, Env: append(slices.Clone(env), "PAWL_CONFIG="+file)}
}

func newTable(t *testing.T, s *servertest.Tables, binary string) (url string) {
	t.Helper()
	url = s.NewTable()
	if said, err := exec.CommandContext(t.Context(), binary, "ledger", "create", url).CombinedOutput(); err != nil {
		t.Fatalf("pawl ledger create: %v\n%s", err, said)
	}
	return url
}

// eventSourceMapping emulates an event source mapping. It deletes the messages that the function does not
// return as failed.
type eventSourceMapping struct {
	*queues
	*servertest.Function
	messages    int64
	dead        string
	deadLetters int

	mu         sync.Mutex
	rng        *rand.Rand
	received   atomic.Int64
	frozenLong atomic.Int64 // of ten minutes
	thawed     atomic.Int64
}

func newDeadLetters(t *testing.T, q *queues) (url string) {
	t.Helper()
	url = q.server.NewQueue(t, nil)
	out, err := q.client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn}})
	if err != nil {
		t.Fatal(err)
	}
	policy := fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":"2"}`, out.Attributes["QueueArn"])
	_, err = q.client.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &q.urls[0], Attributes: map[string]string{
		"RedrivePolicy": policy, "VisibilityTimeout": strconv.Itoa(int(functionTimeout/time.Second) + 2),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return url
}

func (m *eventSourceMapping) run(t *testing.T, r *round) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	errs := make(chan error, *environments+1)
	for range *environments {
		e := m.Environment(t)
		running.Go(func() { errs <- m.poll(ctx, e) })
	}
	sweeper := m.Environment(t)
	running.Go(func() { errs <- m.sweep(ctx, sweeper) })
	stop := sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			t.Logf("the function's log ends:\n%s", m.LogTail(t))
		}
	})
	rng := rand.New(rand.NewPCG(r.seed, 0))
	done := make(chan error, 1)
	running.Go(func() { done <- m.waitForMessages(ctx, errs) })
	r.changeObjects(t, rng, done)
	r.progress(t, "every message was received")
	eventually(t, time.Minute, r.notificationsReceived)
	r.waitUntilSettledWithin(t, 5*time.Minute)
	r.progress(t, "settled")
	m.markDeadLettersLost(t, r.relay)
	for _, row := range auditAll(t, r.buckets.store, r.ledger, inputs, pipelines) {
		r.auditFindings++
		if !r.relay.lastWasDropped(row.Object()) {
			t.Errorf("%s: the notification of its last change was acknowledged, but is not in the ledger", row)
		}
	}
	r.waitUntilSettledWithin(t, 5*time.Minute)
	r.progress(t, "audited, and settled again")
	for _, row := range auditAll(t, r.buckets.store, r.ledger, inputs, pipelines) {
		t.Errorf("%s: an audit of settled rows finds a loss", row)
	}
	stop()
	r.fleet.stop(t)
	if err := r.journal.end(); err != nil {
		t.Fatal(err)
	}
}

func (m *eventSourceMapping) waitForMessages(ctx context.Context, errs <-chan error) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for m.received.Load() < m.messages || m.thawed.Load() < int64(*longFreezes) || m.Killed.Load() == 0 {
		select {
		case <-ctx.Done():
			return nil
		case err := <-errs:
			if err != nil {
				return err
			}
		case <-tick.C:
		}
	}
	return nil
}

func (m *eventSourceMapping) poll(ctx context.Context, e *servertest.Environment) error {
	long := false // for ten minutes
	for ctx.Err() == nil {
		got, err := m.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &m.urls[0], MaxNumberOfMessages: 10, WaitTimeSeconds: 1})
		if err != nil || len(got.Messages) == 0 {
			continue
		}
		m.received.Add(int64(len(got.Messages)))
		in := events.SQSEvent{}
		for _, one := range got.Messages {
			in.Records = append(in.Records, events.SQSMessage{MessageId: *one.MessageId, EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:us-east-1:123456789012:pawl", Body: *one.Body})
		}
		payload, err := json.Marshal(in)
		if err != nil {
			return err
		}
		said, err := e.Invoke(ctx, payload, m.randomCut())
		if err != nil {
			if ctx.Err() == nil && !m.mayFail(err) {
				return err
			}
			continue // the messages are redelivered
		}
		if err := m.delete(ctx, got.Messages, said); err != nil {
			return err
		}
		if long {
			m.thawed.Add(1)
		}
		long = m.freeze(ctx)
	}
	return nil
}

// mayFail accepts errors of killed invocations, and of those that the table did not answer in time, because
// it is throttled or the machine is slow. Their messages are redelivered.
func (m *eventSourceMapping) mayFail(err error) bool {
	late := func(text string) bool { return strings.Contains(err.Error(), text) }
	return errors.Is(err, servertest.ErrKilled) ||
		late("the ledger did not answer in time") || late("the deadline is in") || late("the sweep got no due rows")
}

func (m *eventSourceMapping) randomCut() *servertest.EarlyKill {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rng.IntN(10) > 0 {
		return nil
	}
	return &servertest.EarlyKill{After: time.Duration(m.rng.Int64N(int64(time.Second))), Freeze: m.rng.IntN(3) == 0}
}

func (m *eventSourceMapping) delete(ctx context.Context, all []types.Message, said string) error {
	var out *struct {
		BatchItemFailures []events.SQSBatchItemFailure `json:"batchItemFailures"`
	}
	if err := json.Unmarshal([]byte(said), &out); err != nil || out == nil || out.BatchItemFailures == nil {
		return fmt.Errorf("the function returned %s: %w", said, err)
	}
	failed := map[string]bool{}
	for _, f := range out.BatchItemFailures {
		failed[f.ItemIdentifier] = true
	}
	for _, one := range all {
		if failed[*one.MessageId] {
			continue
		}
		_, err := m.client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &m.urls[0], ReceiptHandle: one.ReceiptHandle})
		if received := (*types.ReceiptHandleIsInvalid)(nil); errors.As(err, &received) {
			continue
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// freeze keeps a process frozen: one in ten for up to the longest freeze. It reports whether it
// lasted ten minutes.
func (m *eventSourceMapping) freeze(ctx context.Context) (long bool) {
	m.mu.Lock()
	d := time.Duration(m.rng.Int64N(int64(200 * time.Millisecond)))
	if m.rng.IntN(10) == 0 {
		d = time.Duration(m.rng.Int64N(int64(*freeze)))
	}
	m.mu.Unlock()
	if m.received.Load() > m.messages/4 && m.frozenLong.Add(1) <= int64(*longFreezes) {
		d, long = 10*time.Minute, true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return long
}

func (m *eventSourceMapping) sweep(ctx context.Context, e *servertest.Environment) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		if _, err := e.Invoke(ctx, []byte(`{"pawl":"sweep"}`), m.randomCut()); err != nil && ctx.Err() == nil && !m.mayFail(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (m *eventSourceMapping) markDeadLettersLost(t *testing.T, r *relay) {
	t.Helper()
	for {
		got, err := m.client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &m.dead, MaxNumberOfMessages: 10, VisibilityTimeout: 3600})
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Messages) == 0 {
			return
		}
		for _, one := range got.Messages {
			m.deadLetters++
			batch, err := event.Parse([]byte(aws.ToString(one.Body)), event.Detect)
			if err != nil {
				t.Fatal(err)
			}
			r.markLost(batch.Events)
		}
	}
}
