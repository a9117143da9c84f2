//go:build unix

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/pawlhq/pawl/internal/servertest"
)

// TestLambdaOne invokes the real binary as a function once for each kind of event.
func TestLambdaOne(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	binary := build(t, dir)
	minio := servertest.MinIO(t, servertest.Options{})
	w := newWorld(t, minio)
	table := newTable(t, servertest.DynamoDB(t), binary)
	f := newFunction(t, binary, dir, minio, table, "copy: {to: s3://outputs/up/}")
	e := f.environment(t)
	w.put(t, "a.txt", "content")
	body := `{"Records":[{"eventVersion":"2.1","eventSource":"aws:s3","awsRegion":"us-east-1","eventTime":"2026-11-26T08:00:00.000Z","eventName":"ObjectCreated:Put","s3":{"s3SchemaVersion":"1.0","bucket":{"name":"inputs"},"object":{"key":"a.txt","size":7,"sequencer":"0055AED6DCD90281E5"}}}]}`
	payload, err := json.Marshal(events.SQSEvent{Records: []events.SQSMessage{{MessageId: "m1", EventSource: "aws:sqs", Body: body}}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		start := time.Now()
		got, err := e.invoke(t.Context(), payload, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, f.said(t))
		}
		t.Logf("%v %s", time.Since(start), got)
	}
	t.Log(f.said(t))
}

// newTable makes a table for a ledger.
func newTable(t *testing.T, s *servertest.Tables, binary string) (url string) {
	t.Helper()
	url = s.NewTable()
	if said, err := exec.CommandContext(t.Context(), binary, "ledger", "create", url).CombinedOutput(); err != nil {
		t.Fatalf("pawl ledger create: %v\n%s", err, said)
	}
	return url
}

func newFunction(t *testing.T, binary, dir string, s *servertest.Server, table, action string) *function {
	t.Helper()
	log, err := os.Create(filepath.Join(dir, "lambda.log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	config := filepath.Join(dir, "lambda.yaml")
	text := "ledger: " + table + "\nobjects: {endpoint: \"" + s.Endpoint + "\", region: us-east-1, path_style: true}\nlambda: {sweep: scheduled}\npipelines:\n  - name: up\n    match: {bucket: inputs}\n    " + action + "\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return &function{binary: binary, log: log, timeout: 10 * time.Second, env: []string{
		"PAWL_CONFIG=" + config, "AWS_ACCESS_KEY_ID=" + s.AccessKey, "AWS_SECRET_ACCESS_KEY=" + s.SecretKey,
	}}
}
