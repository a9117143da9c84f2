package servertest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/pawlhq/pawl/internal/toolcache"
)

// Queues is a running ElasticMQ. It accepts any credentials and enforces the limits of SQS.
type Queues struct {
	Endpoint string
	Region   string
}

const elasticMQConfig = `
include classpath("application.conf")
node-address { protocol = http, host = "127.0.0.1", port = %[1]s, context-path = "" }
rest-sqs { enabled = true, bind-port = %[1]s, bind-hostname = "127.0.0.1", sqs-limits = strict }
rest-stats { enabled = false }
aws { region = us-east-1, accountId = 000000000000 }
`

// ElasticMQ starts an ElasticMQ.
func ElasticMQ(t testing.TB) *Queues {
	t.Helper()
	jars := binary(t, toolcache.ElasticMQ)
	q := &Queues{Region: "us-east-1"}
	dir := t.TempDir()
	start(t, "elasticmq", func(addr string) *exec.Cmd {
		q.Endpoint = "http://" + addr
		config := filepath.Join(dir, "elasticmq.conf")
		_, port, _ := net.SplitHostPort(addr)
		if err := os.WriteFile(config, fmt.Appendf(nil, elasticMQConfig, port), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
			"-Dconfig.file="+config, "-cp", filepath.Join(jars, "*"), toolcache.ElasticMQ.Package)
		cmd.Env, cmd.Dir = environment(dir), dir
		return cmd
	}, q.ready)
	return q
}

func (q *Queues) ready(ctx context.Context) error {
	_, err := q.Client().ListQueues(ctx, &sqs.ListQueuesInput{}, func(o *sqs.Options) { o.RetryMaxAttempts = 1 })
	return err
}

// Client returns an SDK client of the server.
func (q *Queues) Client() *sqs.Client {
	return sqs.New(sqs.Options{
		BaseEndpoint: aws.String(q.Endpoint), Region: q.Region,
		Credentials: credentials.NewStaticCredentialsProvider("pawl", "pawl", ""),
	})
}

// NewQueue creates a queue with attributes of SQS, and returns its URL.
func (q *Queues) NewQueue(t testing.TB, attributes map[string]string) string {
	t.Helper()
	made, err := q.Client().CreateQueue(t.Context(), &sqs.CreateQueueInput{
		QueueName: aws.String("t-" + rand.Text()), Attributes: attributes,
	})
	if err != nil {
		t.Fatalf("create a queue: %v", err)
	}
	return *made.QueueUrl
}
