package servertest

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/pawlhq/pawl/internal/toolcache"
)

// Streams is a running server with the protocol of Kinesis. It does not limit reads.
type Streams struct {
	Name     string
	Endpoint string
	Region   string

	// CanReshard: the server supports UpdateShardCount.
	CanReshard bool
	// ConstantEndNumbers: the range of a closed shard always ends with the same number.
	ConstantEndNumbers bool
}

// ignoreAborted keeps kinesalite running if a client is killed during a request.
const ignoreAborted = `process.on("uncaughtException", e => {
	if (e.message === "aborted") return;
	console.error(e);
	process.exit(1);
});
`

// Kinesalite starts a kinesalite, which has no UpdateShardCount.
func Kinesalite(t testing.TB) *Streams {
	t.Helper()
	folder := binary(t, toolcache.Kinesalite)
	s := &Streams{Name: "kinesalite", Region: "us-east-1"}
	s.launch(t, func(port string) *exec.Cmd {
		dir := t.TempDir()
		aborted := filepath.Join(dir, "aborted.cjs")
		if err := os.WriteFile(aborted, []byte(ignoreAborted), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("node", "--require", aborted, filepath.Join(folder, "node_modules", "kinesalite", "cli.js"), "--port", port, "--host", "127.0.0.1",
			"--createStreamMs", "20", "--deleteStreamMs", "20", "--updateStreamMs", "20", "--shardLimit", "100")
		cmd.Env, cmd.Dir = environment(dir), dir
		return cmd
	})
	return s
}

// KinesisLocal starts a kinesis-local, which needs 1.5 GB of memory and listens on all interfaces.
func KinesisLocal(t testing.TB) *Streams {
	t.Helper()
	folder := filepath.Join(binary(t, toolcache.KinesisLocal), "node_modules", "kinesis-local")
	s := &Streams{Name: "kinesis-local", Region: "us-east-1", CanReshard: true, ConstantEndNumbers: true}
	s.launch(t, func(port string) *exec.Cmd {
		other, err := FreeAddress() // a required second port, for TLS
		if err != nil {
			t.Fatal(err)
		}
		_, tls, _ := net.SplitHostPort(other)
		cmd := exec.Command("node", "main.js")
		cmd.Env = environment(t.TempDir(), "KINESIS_MOCK_PLAIN_PORT="+port, "KINESIS_MOCK_TLS_PORT="+tls, "LOG_LEVEL=ERROR", "SHARD_LIMIT=100",
			"CREATE_STREAM_DURATION=20ms", "DELETE_STREAM_DURATION=20ms", "UPDATE_SHARD_COUNT_DURATION=20ms",
			"SPLIT_SHARD_DURATION=20ms", "MERGE_SHARDS_DURATION=20ms", "AWS_REGION="+s.Region)
		cmd.Dir = folder // where its certificate is
		return cmd
	})
	return s
}

func (s *Streams) launch(t testing.TB, command func(port string) *exec.Cmd) {
	t.Helper()
	start(t, s.Name, func(addr string) *exec.Cmd {
		s.Endpoint = "http://" + addr
		_, port, _ := net.SplitHostPort(addr)
		return command(port)
	}, func(ctx context.Context) error {
		_, err := s.Client().ListStreams(ctx, &kinesis.ListStreamsInput{}, func(o *kinesis.Options) { o.RetryMaxAttempts = 1 })
		return err
	})
}

// Client returns an SDK client of the server.
func (s *Streams) Client() *kinesis.Client {
	return kinesis.New(kinesis.Options{
		BaseEndpoint: aws.String(s.Endpoint), Region: s.Region,
		Credentials: credentials.NewStaticCredentialsProvider("pawl", "pawl", ""),
	})
}

// NewStream creates a stream and waits until it is active.
func (s *Streams) NewStream(t testing.TB, shards int32) string {
	t.Helper()
	name := "t-" + strings.ToLower(rand.Text())
	if _, err := s.Client().CreateStream(t.Context(), &kinesis.CreateStreamInput{StreamName: &name, ShardCount: &shards}); err != nil {
		t.Fatalf("create a stream on %s: %v", s.Name, err)
	}
	s.WaitActive(t, name)
	return name
}

var errNotActive = errors.New("not active yet")

// WaitActive waits until the stream is active.
func (s *Streams) WaitActive(t testing.TB, stream string) {
	t.Helper()
	err := poll(t.Context(), nil, func(ctx context.Context) error {
		got, err := s.Client().DescribeStreamSummary(ctx, &kinesis.DescribeStreamSummaryInput{StreamName: &stream})
		if err == nil && got.StreamDescriptionSummary.StreamStatus != "ACTIVE" {
			err = errNotActive
		}
		return err
	})
	if err != nil {
		t.Fatalf("wait for stream %s on %s: %v", stream, s.Name, err)
	}
}
