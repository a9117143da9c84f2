// Package servertest starts real servers for tests. They end with the test, and keep their data in
// its temporary folder or in memory. All but kinesis-local and DynamoDB Local listen on loopback
// only.
//
// Only this package skips tests: if a server's binary has not been built, or if the machine cannot
// give a command its own disk. With PAWL_TEST_REQUIRE=1 such a test fails. Without Java, Node,
// Python, Terraform or Prometheus, a test that needs it fails only in CI. go test -short skips these tests, and
// tests that call [Long].
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

// Server is a running object store with its properties. A property is true if its comment applies.
type Server struct {
	Name      string
	Endpoint  string // http://127.0.0.1:port, for path-style addresses
	Region    string
	AccessKey string
	SecretKey string

	// The server rejects wrong access keys.
	Credentials bool
	// The server checks If-Match on DELETE, but not atomically.
	DeleteConditions bool
	// The copy methods whose conditions the server checks.
	CopyConditions bucket.CopyMethod
	// A PUT may land although the object was removed after the check of the condition.
	LosesRemovals bool
	// A HEAD may combine the metadata of one object with the ETag of another.
	MixesHeads bool
	Versions   bool
	// The server may store the received part of an unsigned PUT whose connection broke.
	KeepsCutBodies bool
	// A PUT retains the metadata of the old object.
	MergesMetadata bool
	// The server loses Cache-Control and Content-Language.
	LosesHeaders bool
	// The server can list keys that XML cannot represent.
	ListsBytes bool
	// Alias returns the key under which the server stores a key. Nil means the same key.
	Alias func(key string) string
	// A notification may name the wrong object.
	Garbles bool
	// The server runs in the test's process.
	InProcess bool

	notify func(t testing.TB, bucket string)
}

// Options are the options of a server. The zero Options send no notifications.
type Options struct {
	// Webhook is the URL for notifications. If it does not respond when versitygw starts,
	// versitygw sends none.
	Webhook string
	// Direct makes MinIO send each notification once and immediately. Otherwise it retries rejected
	// ones every three seconds.
	Direct bool
	// Authorization is the header of notifications, or empty. versitygw supports only Basic
	// credentials.
	Authorization string
}

// Each runs f as a subtest on MinIO and on versitygw.
func Each(t *testing.T, o Options, f func(t *testing.T, s *Server)) {
	t.Helper()
	t.Run("minio", func(t *testing.T) { f(t, MinIO(t, o)) })
	t.Run("versitygw", func(t *testing.T) { f(t, VersityGW(t, o)) })
}

// Client returns an SDK client of the server.
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

// NewBucket creates an empty bucket.
func (s *Server) NewBucket(t testing.TB) string {
	t.Helper()
	name := "t-" + strings.ToLower(rand.Text())
	_, err := s.Client().CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &name})
	if err != nil {
		t.Fatalf("create a bucket on %s: %v", s.Name, err)
	}
	return name
}

// Notify sends notifications of the bucket to Options.Webhook.
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

func binary(t testing.TB, tool toolcache.Tool) string {
	t.Helper()
	if tool.NeedsRuntime() {
		Long(t)
	}
	path, err := tool.Find()
	require(t, err)
	return path
}

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

// secret is unique: a server that accepts it was started by this test.
func secret() string { return fmt.Sprintf("secret-%s", rand.Text()) }
