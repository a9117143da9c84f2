package servertest

import (
	"context"
	"crypto/rand"
	"net"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/pawlhq/pawl/internal/toolcache"
)

// Tables is a running DynamoDB Local. It accepts any credentials, does not throttle, and its index
// is always up to date.
type Tables struct {
	Endpoint string
	Region   string
}

// DynamoDB starts a DynamoDB Local, which listens on all interfaces. Java options override the
// defaults.
func DynamoDB(t testing.TB, options ...string) *Tables {
	t.Helper()
	jars := binary(t, toolcache.DynamoDBLocal)
	d := &Tables{Region: "us-east-1"}
	dir := t.TempDir()
	start(t, "dynamodb", func(addr string) *exec.Cmd {
		d.Endpoint = "http://" + addr
		_, port, _ := net.SplitHostPort(addr)
		args := append([]string{"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}, options...)
		args = append(args, "-Djava.library.path="+jars, "-cp", filepath.Join(jars, "*"), toolcache.DynamoDBLocal.Package,
			"-inMemory", "-sharedDb", "-disableTelemetry", "-port", port)
		cmd := exec.Command("java", args...)
		cmd.Env, cmd.Dir = environment(dir), dir
		return cmd
	}, d.ready)
	return d
}

func (d *Tables) ready(ctx context.Context) error {
	_, err := d.Client().ListTables(ctx, &dynamodb.ListTablesInput{}, func(o *dynamodb.Options) { o.RetryMaxAttempts = 1 })
	return err
}

// Client returns an SDK client of the server.
func (d *Tables) Client() *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(d.Endpoint), Region: d.Region,
		Credentials: credentials.NewStaticCredentialsProvider("pawl", "pawl", ""),
	})
}

// NewTable returns the URL of a new table that does not exist yet.
func (d *Tables) NewTable() string {
	return "dynamodb://t-" + rand.Text() + "?region=" + d.Region + "&endpoint=" + d.Endpoint
}
