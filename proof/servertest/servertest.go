// Package servertest gives tests real servers: the object stores MinIO and
// versitygw, PostgreSQL, the queues of ElasticMQ, the tables of DynamoDB Local and the streams of kinesalite and
// kinesis-local as processes of their own, gofakes3 inside the test, and moto for other services of AWS. All but
// kinesis-local listen on loopback only. They keep their data in memory, or in a
// temporary folder of the test's, and end with it.
//
// This is the only place where a test may be skipped: when a server's binary has
// not been built, or the machine gives a command no disk of its own. With
// PAWL_TEST_REQUIRE=1 that is a failure instead, so that nothing is skipped unseen.
// Without Java, Node, Python or Terraform a test that needs it is skipped all the same, except in CI.
// go test -short skips every test that needs one of them, and those that call [Long].
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

// Server is a running object store and what it can do.
type Server struct {
	Name      string // minio, versitygw or gofakes3
	Endpoint  string // http://127.0.0.1:port, to be used with path style
	Region    string
	AccessKey string
	SecretKey string

	// Credentials says that the server refuses wrong keys.
	Credentials bool
	// DeleteConditions says that it honours If-Match on DELETE: it looks, then
	// removes. What another writes in between is lost.
	DeleteConditions bool
	// CopyConditions is how it copies objects and honours the conditions on a copy.
	CopyConditions bucket.CopyMethod
	// LosesRemovals says that a PUT may land on what was removed since its
	// condition was checked: of the two, only PUT takes the lock.
	LosesRemovals bool
	// MixesHeads says that HEAD may tell the metadata of one object and the ETag
	// of the one that was before it, or came next: it reads one file name
	// several times.
	MixesHeads bool
	// Versions says that its buckets can keep versions.
	Versions bool
	// KeepsCutBodies says that it may store what arrived of a PUT whose
	// connection broke, if the payload is not signed.
	KeepsCutBodies bool
	// MergesMetadata says that a PUT does not remove the old object's metadata.
	MergesMetadata bool
	// LosesHeaders says that it does not keep Cache-Control and Content-Language.
	LosesHeaders bool
	// ListsBytes says that it can list keys that XML cannot hold.
	ListsBytes bool
	// Alias returns the key under which it files a key. Nil: the same.
	Alias func(key string) string
	// Garbles says that it may announce a change under another object's name:
	// versitygw writes the notification while the request's buffer is already
	// used for the next one.
	Garbles bool
	// InProcess says that it shares the test's memory.
	InProcess bool

	notify func(t testing.TB, bucket string)
}

// Options of a server. The zero Options send no notifications.
type Options struct {
	// Webhook is the URL that notifications go to. It must be listening
	// before versitygw starts: versitygw posts a test event and gives up if
	// no process is there.
	Webhook string
	// Direct lets MinIO send a notification at once, and forget it where the webhook
	// does not take it. Otherwise MinIO keeps them on disk, and sends what is there
	// every three seconds.
	Direct bool
	// Authorization is the header that notifications carry, none if empty.
	// versitygw can only send Basic credentials.
	Authorization string
}

// Each runs f as a subtest on MinIO and on versitygw.
func Each(t *testing.T, o Options, f func(t *testing.T, s *Server)) {
	t.Helper()
	t.Run("minio", func(t *testing.T) { f(t, MinIO(t, o)) })
	t.Run("versitygw", func(t *testing.T) { f(t, VersityGW(t, o)) })
}

// Client returns the SDK's client of the server, for what package bucket has no
// call for.
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

// NewBucket creates an empty bucket under a name of its own.
func (s *Server) NewBucket(t testing.TB) string {
	t.Helper()
	name := "t-" + strings.ToLower(rand.Text())
	_, err := s.Client().CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &name})
	if err != nil {
		t.Fatalf("creating a bucket on %s: %v", s.Name, err)
	}
	return name
}

// Notify makes the server send the bucket's creations and removals to
// Options.Webhook.
func (s *Server) Notify(t testing.TB, bucket string) {
	t.Helper()
	if s.notify == nil {
		t.Fatalf("%s was started without a webhook, or has none", s.Name)
	}
	s.notify(t, bucket)
}

// Long marks a test that takes so long that go test -short skips it.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("left out by -short: `go run ./tools/test -ci` runs it")
	}
}

// binary returns the path of the tool, or ends the test when it is not built.
func binary(t testing.TB, tool toolcache.Tool) string {
	t.Helper()
	if tool.NeedsRuntime() {
		Long(t)
	}
	path, err := tool.Find()
	require(t, err)
	return path
}

// require ends the test if what it needs is not there.
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

// secret returns a password that no other server has, so that a server that
// answers to it is the one that was started.
func secret() string { return fmt.Sprintf("secret-%s", rand.Text()) }
