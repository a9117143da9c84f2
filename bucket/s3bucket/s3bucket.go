// Package s3bucket implements bucket.Store for Amazon S3 and compatible stores: MinIO, versitygw,
// Ceph, R2.
//
// Writes are sent once, without retries of the SDK, because a retry after a conditional write that
// landed would fail its own precondition. Bodies that are not an io.Seeker are streamed without a
// signature, even over plain HTTP. If the endpoint uses TLS, it protects them.
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

// Config configures a store. The zero Config uses AWS with the environment variables and files
// of the SDK.
type Config struct {
	// Endpoint is the URL of the store, for example http://127.0.0.1:9000. Default:
	// AWS_ENDPOINT_URL, or the AWS endpoint of the region.
	Endpoint string
	// Region is the region for signatures. Default: the region of the SDK, or us-east-1 if
	// Endpoint is set.
	Region string
	// PathStyle puts the bucket name into the path instead of the host name. MinIO and
	// versitygw need it.
	PathStyle bool
	// AccessKey and SecretKey are static credentials. Default: the credentials chain of the SDK
	// (environment, shared files, web identity, container, instance).
	AccessKey string
	SecretKey string
}

// Store is an S3 store. It is safe for concurrent use.
type Store struct {
	client   *s3.Client
	clock    *storeClock
	partSize int64 // part size of a copy in bytes
}

var _ bucket.Store = (*Store)(nil)

// New returns a store. It reads the configuration of the SDK, and sends no request to the
// store. Call [Store.Check] to check a bucket.
func New(ctx context.Context, c Config) (*Store, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	// Without this option, the SDK writes warnings to standard error, although its errors contain
	// them too.
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
		t.IdleConnTimeout = 50 * time.Second   // so that a process opens new connections after a pause
		t.MaxIdleConnsPerHost = t.MaxIdleConns // all requests go to one host
	})}
	return &Store{clock: clock, partSize: partSize, client: s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.UsePathStyle, o.HTTPClient = c.PathStyle, clock
		if c.Endpoint != "" {
			o.BaseEndpoint = aws.String(c.Endpoint)
		}
		// Without this option the SDK sends a trailing checksum, which requires TLS or a body that
		// can be read twice.
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		o.DisableLogOutputChecksumValidationSkipped = true
	})}, nil
}

// Endpoint returns the URL of the store from the configuration, or "" for AWS.
func (s *Store) Endpoint() string { return aws.ToString(s.client.Options().BaseEndpoint) }

// Client returns the S3 client, for requests that bucket.Store does not support, such as signed
// URLs.
func (s *Store) Client() *s3.Client { return s.client }

// responseTimeout bounds the time from the request to the first byte of the response.
const responseTimeout = time.Minute

func (c Config) validate() error {
	if (c.AccessKey == "") != (c.SecretKey == "") {
		return errors.New("s3bucket: set both an access key and a secret key: one of them is missing")
	}
	if c.Endpoint == "" {
		return nil
	}
	// The error of url.Parse would repeat a password in the URL.
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Host == "" || u.User != nil || (u.Scheme != "http" && u.Scheme != "https") {
		return errors.New("s3bucket: the endpoint must look like https://host:port, without a user name")
	}
	return nil
}

// Check returns an error unless the bucket exists and can be listed. Call it at startup. If the
// permission to list is missing, S3 responds to a request for a missing object with "access
// denied". Check sends one request. Its error matches ErrNoBucket, ErrDenied, ErrInvalid or
// ErrUnavailable.
func (s *Store) Check(ctx context.Context, name string) error {
	// Check lists one key, because the response to HEAD contains no reason.
	_, err := s.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &name, MaxKeys: aws.Int32(1)}, requireListing, withoutRetries)
	if err != nil && !errors.Is(err, errUnlistablePage) { // with errUnlistablePage, the store cannot list the first object, but the bucket exists
		return readError("checking", event.Object{Bucket: name}, err)
	}
	return nil
}

// credentialsChain marks errors of the credentials provider, which the SDK does not distinguish
// from a broken connection.
type credentialsChain struct{ aws.CredentialsProvider }

// Retrieve implements [aws.CredentialsProvider].
func (c credentialsChain) Retrieve(ctx context.Context) (aws.Credentials, error) {
	got, err := c.CredentialsProvider.Retrieve(ctx)
	if err != nil && ctx.Err() == nil {
		return got, fmt.Errorf("%w: %w", errNoCredentials, err)
	}
	return got, err
}
