// Package s3bucket is the bucket.Store of AWS S3 and of everything that speaks
// its language: MinIO, versitygw, Ceph, R2.
//
// Writes are sent once: the SDK's retries are off for them, or the retry of a
// conditional write that had landed would see a conflict of its own making.
// Bodies stream, unsigned, over plain HTTP as well: TLS, where there is any,
// protects them.
package s3bucket

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
)

// Config says where the store is. The zero Config is AWS, as the SDK's
// environment variables and files describe it.
type Config struct {
	// Endpoint is the store's URL, http://127.0.0.1:9000 say. Empty: AWS_ENDPOINT_URL,
	// or else AWS's own for the region.
	Endpoint string
	// Region signs the requests. Empty: the SDK's, or else us-east-1 where an
	// Endpoint is given.
	Region string
	// PathStyle puts the bucket into the path and not into the host's name.
	// MinIO and versitygw want it.
	PathStyle bool
	// AccessKey and SecretKey are static credentials. Empty: the SDK's chain
	// of environment, shared files, web identity, container and instance.
	AccessKey string
	SecretKey string
}

// Store is an S3 store. It is safe for concurrent use.
type Store struct {
	client   *s3.Client
	clock    *storeClock
	partSize int64 // of a copy, in bytes
}

var _ bucket.Store = (*Store)(nil)

// New returns the store. It reads configuration, and sends nothing to the
// store: see [Store.Check].
func New(ctx context.Context, c Config) (*Store, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	// Or the SDK warns on standard error of what an error tells anyway.
	opts := []func(*config.LoadOptions) error{config.WithLogger(logging.Nop{})}
	if c.Region != "" {
		opts = append(opts, config.WithRegion(c.Region))
	}
	if c.AccessKey != "" {
		opts = append(opts, config.WithCredentialsProvider(
			credentials.NewStaticCredentialsProvider(c.AccessKey, c.SecretKey, "")))
	}
	cfg, err := config.LoadDefaultConfig(ctx, opts...)
	if err != nil {
		return nil, fmt.Errorf("s3bucket: reading the AWS configuration: %w", err)
	}
	if cfg.Region == "" {
		if c.Endpoint == "" {
			return nil, errors.New("s3bucket: no region: set region in the configuration, or AWS_REGION")
		}
		cfg.Region = "us-east-1"
	}
	if cfg.Credentials != nil {
		cfg.Credentials = credentialsChain{cfg.Credentials}
	}
	clock := &storeClock{HTTPClient: awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.ResponseHeaderTimeout = responseTimeout
		t.IdleConnTimeout = 50 * time.Second   // a process that was frozen opens new connections
		t.MaxIdleConnsPerHost = t.MaxIdleConns // all are to one host
	})}
	return &Store{clock: clock, partSize: partSize, client: s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.UsePathStyle, o.HTTPClient = c.PathStyle, clock
		if c.Endpoint != "" {
			o.BaseEndpoint = aws.String(c.Endpoint)
		}
		// A trailing checksum needs a body that can be read twice, or TLS.
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		o.DisableLogOutputChecksumValidationSkipped = true
	})}, nil
}

// Endpoint is the URL of the store, as the Config or the SDK's own configuration
// gave it: empty for AWS.
func (s *Store) Endpoint() string { return aws.ToString(s.client.Options().BaseEndpoint) }

// Client returns the client of the store, for those who need more of S3 than a
// bucket.Store has: signed URLs, say.
func (s *Store) Client() *s3.Client { return s.client }

// answerTime is how long a store may take to begin its answer, once it has the
// request: one that never answers must not hold a lease for ever.
const responseTimeout = time.Minute

func (c Config) validate() error {
	if (c.AccessKey == "") != (c.SecretKey == "") {
		return errors.New("s3bucket: set both an access key and a secret key: one of them is missing")
	}
	if c.Endpoint == "" {
		return nil
	}
	// The parser's own error would repeat a password in the URL.
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Host == "" || u.User != nil || (u.Scheme != "http" && u.Scheme != "https") {
		return errors.New("s3bucket: the endpoint must look like https://host:port, without a user name")
	}
	return nil
}

// Check looks whether the bucket is there and may be used: at start-up, before
// anything is claimed. It needs the permission to list, without which S3 answers
// "denied" for an object that is not there. It asks once. Its error matches
// ErrNoBucket, ErrDenied, ErrInvalid or ErrUnavailable.
func (s *Store) Check(ctx context.Context, name string) error {
	// Listing one key, because HEAD's answer has no room for a reason.
	_, err := s.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &name, MaxKeys: aws.Int32(1)}, requireListing, withoutRetries)
	if err != nil && !errors.Is(err, errUnlistablePage) { // says so of its first object
		return readError("checking", event.Object{Bucket: name}, err)
	}
	return nil
}

// credentialsChain marks the errors of having no credentials, which the SDK does
// not tell from a broken connection.
type credentialsChain struct{ aws.CredentialsProvider }

// Retrieve implements [aws.CredentialsProvider].
func (c credentialsChain) Retrieve(ctx context.Context) (aws.Credentials, error) {
	got, err := c.CredentialsProvider.Retrieve(ctx)
	if err != nil && ctx.Err() == nil {
		return got, fmt.Errorf("%w: %w", errNoCredentials, err)
	}
	return got, err
}
