//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/proof/servertest"
)

const lambdaConfig = `
ledger: %s
objects: {endpoint: %q, region: us-east-1, path_style: true}
lambda: {sweep: scheduled}
pipelines:
  - name: up
    match: {bucket: inputs}
    copy: {to: "s3://outputs/up/"}
`

const (
	s3Event = `{"Records":[{"eventVersion":"2.1","eventSource":"aws:s3","awsRegion":"us-east-1","eventTime":"2026-01-02T03:04:05.000Z","eventName":"ObjectCreated:Put",` +
		`"s3":{"s3SchemaVersion":"1.0","bucket":{"name":"inputs"},"object":{"key":%q,"size":7,"sequencer":"0055AED6DCD90281E5"}}}]}`
	eventBridgeEvent = `{"version":"0","id":"1","detail-type":"Object Created","source":"aws.s3","account":"123456789012","time":"2026-01-02T03:04:05Z","region":"us-east-1","resources":[],` +
		`"detail":{"version":"0","bucket":{"name":"inputs"},"object":{"key":%q,"size":7,"sequencer":"0055AED6DCD90281E5"},"request-id":"r","requester":"123456789012","reason":"PutObject"}}`
)

func TestLambdaEvents(t *testing.T) {
	t.Parallel()
	binary := build(t)
	minio := servertest.MinIO(t, servertest.Options{})
	w := newTestBuckets(t, minio)
	table := newTable(t, servertest.DynamoDB(t), binary)
	config := fmt.Sprintf(lambdaConfig, table, minio.Endpoint)
	env := []string{"AWS_ACCESS_KEY_ID=" + minio.AccessKey, "AWS_SECRET_ACCESS_KEY=" + minio.SecretKey, "AWS_REGION=us-east-1"}

	t.Run("events", func(t *testing.T) { invokeEach(t, w, newFunction(t, binary, config, env)) })
	t.Run("configurations", func(t *testing.T) {
		o := bucket.Object{Body: strings.NewReader(config), Size: int64(len(config))}
		if _, err := w.store.Put(t.Context(), event.Object{Bucket: outputs, Key: "pawl.yaml"}, o, bucket.Condition{}); err != nil {
			t.Fatal(err)
		}
		parameters := httptest.NewServer(parameter(t, config))
		t.Cleanup(parameters.Close)
		for _, name := range []string{"s3://outputs/pawl.yaml", "ssm:/pawl/config"} {
			f := newFunction(t, binary, "", append(env, "AWS_ENDPOINT_URL_S3="+minio.Endpoint, "AWS_ENDPOINT_URL_SSM="+parameters.URL))
			f.Env = append(f.Env, "PAWL_CONFIG="+name)
			if _, err := f.Environment(t).Invoke(t.Context(), []byte(`{"pawl":"sweep"}`), nil); err != nil {
				t.Errorf("%s: %v\n%s", name, err, f.LogTail(t))
			}
		}
	})
	t.Run("bad configurations", func(t *testing.T) { refuseConfigurations(t, binary, config, table, env) })
	t.Run("bad invocations", func(t *testing.T) {
		f := newFunction(t, binary, config, env)
		f.Timeout = 4900 * time.Millisecond
		e := f.Environment(t)
		for payload, want := range map[string]string{
			fmt.Sprintf(s3Event, "a"): `the deadline is in ([1-4]\.[0-9]*s|[0-9]*ms)`, `{"pawl":"sweep"}`: "at least 5s", `{"pawl":"dance"}`: "at least 5s",
			`{}`: "not an event of SQS, S3, SNS or EventBridge",
		} {
			if _, err := e.Invoke(t.Context(), []byte(payload), nil); err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
				t.Errorf("%s: %v, want %q", payload, err, want)
			}
		}
	})
}

func invokeEach(t *testing.T, w *testBuckets, f *servertest.Function) {
	t.Helper()
	f.Timeout = time.Minute
	e := f.Environment(t)
	invoke := func(payload, want string) {
		t.Helper()
		if got, err := e.Invoke(t.Context(), []byte(payload), nil); err != nil || got != want {
			t.Errorf("returned %s, %v, want %s\n%s", got, err, want, f.LogTail(t))
		}
	}
	encode := func(v any) string {
		t.Helper()
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, key := range []string{"s3", "sns", "bridge", "queued", "scheduled"} {
		w.put(t, key, "content of "+key)
	}
	invoke(`{"pawl":"sweep"}`, "null")
	for range 2 {
		invoke(fmt.Sprintf(s3Event, "s3"), "null")
		invoke(fmt.Sprintf(eventBridgeEvent, "bridge"), "null")
		invoke(encode(events.SNSEvent{Records: []events.SNSEventRecord{{EventSource: "aws:sns", SNS: events.SNSEntity{MessageID: "m", Message: fmt.Sprintf(s3Event, "sns")}}}}), "null")
		invoke(encode(events.SQSEvent{Records: []events.SQSMessage{
			{MessageId: "m1", EventSource: "aws:sqs", Body: "not JSON"}, {MessageId: "m2", EventSource: "aws:sqs", Body: fmt.Sprintf(s3Event, "queued")},
		}}), `{"batchItemFailures":[{"itemIdentifier":"m1"}]}`)
	}
	invoke(`{"pawl":"audit"}`, "null") // the settle window has not passed, so nothing is lost yet
	for _, key := range []string{"s3", "sns", "bridge", "queued"} {
		if _, body, err := w.store.Get(t.Context(), event.Object{Bucket: outputs, Key: "up/" + key}); err != nil {
			t.Error(err)
		} else if err := body.Close(); err != nil {
			t.Error(err)
		}
	}
	log, err := os.ReadFile(f.Log.Name())
	if n := bytes.Count(log, []byte(`"msg":"committed"`)); n != 4 || err != nil {
		t.Errorf("%d attempts were committed (%v), want 4\n%s", n, err, log)
	}
}

// parameter emulates SSM with one parameter.
func parameter(t *testing.T, value string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Name string }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.Header.Get("X-Amz-Target") != "AmazonSSM.GetParameter" {
			t.Errorf("%s: %v", r.Header.Get("X-Amz-Target"), err)
		}
		if in.Name != "/pawl/config" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"__type":"ParameterNotFound"}`))
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"Parameter": map[string]string{"Value": value}})
	}
}

func refuseConfigurations(t *testing.T, binary, config, table string, env []string) {
	t.Helper()
	missing := filepath.Join(t.TempDir(), "none.yaml")
	for want, c := range map[string]struct{ config, name string }{
		"does not exist: create it with":                {strings.Replace(config, "dynamodb://t-", "dynamodb://none-", 1), ""},
		"not shared between the execution environments": {strings.Replace(config, table, "memory", 1), ""},
		"remove the sources":                            {config + "sources:\n  - sqs: {url: \"https://sqs.us-east-1.amazonaws.com/123456789012/q\"}\n", ""},
		"UNSET":                                         {strings.Replace(config, "outputs/up", "${UNSET}/up", 1), ""},
		"is larger than 256 KiB":                        {config + strings.Repeat("# a comment\n", 30_000), ""},
		"no such file":                                  {config, missing},
	} {
		f := newFunction(t, binary, config, env)
		file := filepath.Join(t.TempDir(), "pawl.yaml")
		if err := os.WriteFile(file, []byte(c.config), 0o600); err != nil {
			t.Fatal(err)
		}
		if c.name != "" {
			file = c.name
		}
		f.Env = append(f.Env, "PAWL_CONFIG="+file)
		_, err := f.Environment(t).Invoke(t.Context(), []byte(`{"pawl":"sweep"}`), nil)
		if said := f.LogTail(t); err == nil || !strings.Contains(said, want) || strings.Count(said, "\n") > 0 {
			t.Errorf("%v; it printed, without %q:\n%s", err, want, said)
		}
	}
}
