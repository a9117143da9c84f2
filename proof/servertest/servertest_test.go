package servertest

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

func TestNotifications(t *testing.T) {
	const authorization = "Basic cGF3bDp0b2tlbg=="
	type delivery struct{ authorization, body string }
	got := make(chan delivery, 100)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil && len(body) > 0 {
			got <- delivery{r.Header.Get("Authorization"), string(body)}
		}
	}))
	t.Cleanup(hook.Close)
	Each(t, Options{Webhook: hook.URL, Authorization: authorization}, func(t *testing.T, s *Server) {
		bucket, key := s.NewBucket(t), "k"
		s.Notify(t, bucket)
		client := s.Client()
		if _, err := client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader("x")}); err != nil {
			t.Fatal(err)
		}
		if _, err := client.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &bucket, Key: &key}); err != nil {
			t.Fatal(err)
		}
		missing := map[string]bool{"s3:ObjectCreated:Put": true, "s3:ObjectRemoved:Delete": true}
		deadline := time.After(2 * time.Minute)
		for len(missing) > 0 {
			select {
			case d := <-got:
				var e struct {
					Records []struct {
						EventName string `json:"eventName"`
					}
				}
				if err := json.Unmarshal([]byte(d.body), &e); err != nil {
					t.Fatalf("%v in %s", err, d.body)
				}
				if d.authorization != authorization {
					t.Errorf("Authorization = %q, want %q", d.authorization, authorization)
				}
				for _, r := range e.Records {
					delete(missing, r.EventName)
				}
			case <-deadline:
				t.Fatalf("no notification about %v", missing)
			}
		}
	})
}

func TestS3(t *testing.T) {
	s := S3(t)
	bucket := s.NewBucket(t)
	if _, err := s.Client().HeadBucket(t.Context(), &s3.HeadBucketInput{Bucket: &bucket}); err != nil {
		t.Error(err)
	}
}

// start tries another port.
func TestServerThatEnds(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Name: "none", Endpoint: "http://127.0.0.1:1", Region: "us-east-1"}
	err = startOnce(t, s.Name, exec.Command(sh, "-c", "echo port is taken; exit 3"), s.ready)
	if !errors.Is(err, errExited) || !strings.Contains(err.Error(), "port is taken") {
		t.Errorf("startOnce = %v, want errExited and the program's output", err)
	}
}

func TestBasicInURL(t *testing.T) {
	got, err := withBasic("http://127.0.0.1:1/events", "Basic cGF3bDp0b2tlbg==")
	if want := "http://pawl:token@127.0.0.1:1/events"; got != want || err != nil {
		t.Errorf("withBasic = %q, %v, want %q", got, err, want)
	}
	for _, bad := range []string{"Bearer x", "Basic %"} {
		if got, err := withBasic("http://127.0.0.1:1/", bad); err == nil {
			t.Errorf("withBasic with %q = %q, want an error", bad, got)
		}
	}
}

func TestElasticMQ(t *testing.T) {
	q := ElasticMQ(t)
	url := q.NewQueue(t, nil)
	if _, err := q.Client().SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("hello")}); err != nil {
		t.Fatal(err)
	}
	got, err := q.Client().ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, WaitTimeSeconds: 20})
	if err != nil || len(got.Messages) != 1 || *got.Messages[0].Body != "hello" {
		t.Errorf("received %+v, %v", got, err)
	}
}

// The server is stopped immediately, and keeps its commits.
func TestPostgres(t *testing.T) {
	s := Postgres(t)
	s.Exec("CREATE TABLE kept (n int); INSERT INTO kept VALUES (1)")
	s.Stop()
	s.Start()
	s.Exec("INSERT INTO kept VALUES (2)")
}

func TestStreams(t *testing.T) {
	for name, start := range map[string]func(testing.TB) *Streams{"kinesalite": Kinesalite, "kinesis-local": KinesisLocal} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			stream := s.NewStream(t, 1)
			put, err := s.Client().PutRecord(t.Context(), &kinesis.PutRecordInput{
				StreamName: &stream, PartitionKey: aws.String("k"), Data: []byte("hello"),
			})
			if err != nil {
				t.Fatal(err)
			}
			at, err := s.Client().GetShardIterator(t.Context(), &kinesis.GetShardIteratorInput{
				StreamName: &stream, ShardId: put.ShardId, ShardIteratorType: "TRIM_HORIZON",
			})
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.Client().GetRecords(t.Context(), &kinesis.GetRecordsInput{ShardIterator: at.ShardIterator})
			if err != nil || len(got.Records) != 1 || string(got.Records[0].Data) != "hello" {
				t.Errorf("read %+v, %v", got, err)
			}
		})
	}
}
