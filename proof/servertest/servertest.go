// Package servertest starts real servers for tests: the object stores MinIO and versitygw,
// PostgreSQL, the queues of ElasticMQ, the tables of DynamoDB Local, and the streams of
// kinesalite and kinesis-local as separate processes; gofakes3 in the test's process; and moto
// for other services of AWS. All but kinesis-local and DynamoDB Local listen on loopback only.
// They keep their data in memory or in the test's temporary folder, and end with the test.
//
// Only this package skips tests. It skips a test if a server's binary has not been built, or if
// the machine cannot give a command its own disk. With PAWL_TEST_REQUIRE=1 such a test fails
// instead. If Java, Node, Python or Terraform is not installed, tests that need it are skipped
// even with PAWL_TEST_REQUIRE=1, except in CI. With go test -short, the package skips every
// test that needs Java, Node, Python or Terraform, and every test that calls [Long].
package servertest

import (
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/internal/toolcache"
)

// Server is a running object store and its properties.
type Server struct {
	Name      string // minio, versitygw or gofakes3
	Endpoint  string // http://127.0.0.1:port, for path-style addresses
	Region    string
	AccessKey string
	SecretKey string

	// Credentials reports whether the server rejects wrong access keys.
	Credentials bool
	// DeleteConditions reports whether the server checks If-Match on DELETE. The check and the
	// removal are not atomic: if another write lands between them, it is lost.
	DeleteConditions bool
	// CopyConditions are the copy methods whose conditions the server checks.
	CopyConditions bucket.CopyMethod
	// LosesRemovals reports whether a PUT may land although the object was removed after the
	// server checked the condition. The cause is that only PUT takes the lock.
	LosesRemovals bool
	// MixesHeads reports whether a HEAD response may combine the metadata of one object with
	// the ETag of the previous or next one. The cause is that the server reads the file several
	// times.
	MixesHeads bool
	// Versions reports whether the server supports bucket versioning.
	Versions bool
	// KeepsCutBodies reports whether the server may store a PUT although the connection broke
	// during the body. It then stores the received part. This happens only if the payload is
	// not signed.
	KeepsCutBodies bool
	// MergesMetadata reports whether a PUT retains the metadata of the old object.
	MergesMetadata bool
	// LosesHeaders reports whether the server loses Cache-Control and Content-Language.
	LosesHeaders bool
	// ListsBytes reports whether the server can list keys that XML cannot represent.
	ListsBytes bool
	// Alias returns the key under which the server stores a given key. If Alias is nil, the
	// server does not change keys.
	Alias func(key string) string
	// Garbles reports whether a notification may name the wrong object. The cause is that
	// versitygw writes the notification while it already reuses the request's buffer.
	Garbles bool
	// InProcess reports whether the server runs in the test's process.
	InProcess bool

	notify func(t testing.TB, bucket string)
}

// Options are the options of a server. The zero Options send no notifications.
type Options struct {
	// Webhook is the URL for notifications. A process must listen there before versitygw
	// starts. versitygw posts a test event, and sends no notifications if no process responds.
	Webhook string
	// Direct makes MinIO send each notification immediately. MinIO then drops a notification
	// that the webhook rejects. Without Direct, MinIO stores notifications on disk and sends
	// them every three seconds.
	Direct bool
	// Authorization is the Authorization header of notifications. If it is empty, notifications
	// have no such header. versitygw supports only Basic credentials.
	Authorization string
}

// Each runs f as a subtest on MinIO and on versitygw.
func Each(t *testing.T, o Options, f func(t *testing.T, s *Server)) {
	t.Helper()
	t.Run("minio", func(t *testing.T) { f(t, MinIO(t, o)) })
	t.Run("versitygw", func(t *testing.T) { f(t, VersityGW(t, o)) })
}

// Client returns an SDK client of the server, for requests that package bucket does not support.
func (s *Server) Client() *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint:               aws.String(s.Endpoint),
		Region:                     s.Region,
		UsePathStyle:               true,
		Credentials:                credentials.NewStaticCredentialsProvider(s.AccessKey, s.SecretKey, ""),
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	})
}

// NewBucket creates an empty bucket with a new name.
func (s *Server) NewBucket(t testing.TB) string {
	t.Helper()
	name := "t-" + strings.ToLower(rand.Text())
	_, err := s.Client().CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &name})
	if err != nil {
		t.Fatalf("create a bucket on %s: %v", s.Name, err)
	}
	return name
}

// Notify configures notifications of creations and removals in the bucket to Options.Webhook.
func (s *Server) Notify(t testing.TB, bucket string) {
	t.Helper()
	if s.notify == nil {
		t.Fatalf("%s has no webhook", s.Name)
	}
	s.notify(t, bucket)
}

// Long skips a long test under go test -short.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("skipped by -short: `go run ./tools/test -ci` runs it")
	}
}

// binary returns the path of the tool. If the tool has not been built, binary skips or fails
// the test.
func binary(t testing.TB, tool toolcache.Tool) string {
	t.Helper()
	if tool.NeedsRuntime() {
		Long(t)
	}
	path, err := tool.Find()
	require(t, err)
	return path
}

// require skips or fails the test if err is not nil.
func require(t testing.TB, err error) {
	t.Helper()
	excused := toolcache.IsMissingRuntime(err) && os.Getenv("CI") == ""
	switch {
	case err == nil:
	case os.Getenv("PAWL_TEST_REQUIRE") == "1" && !excused:
		t.Fatalf("PAWL_TEST_REQUIRE is set: %v", err)
	default:
		t.Skip(err)
	}
}

// secret returns a unique password. If a server accepts it, this test started the server.
func secret() string { return fmt.Sprintf("secret-%s", rand.Text()) }
