// Package s3bucket implements bucket.Store for Amazon S3 and compatible stores: MinIO, versitygw,
// Ceph, R2.
//
// The SDK sends writes once: a retry after a conditional write that landed would fail its own
// precondition. Bodies that are not an io.Seeker are sent without a signature, even over plain
// HTTP.
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

// Config configures a store. The zero value uses the environment and files of the SDK.
type Config struct {
	// Endpoint is the URL of the store, for example http://127.0.0.1:9000. Default:
	// AWS_ENDPOINT_URL, or the AWS endpoint of the region.
	Endpoint string
	// Region is used for signatures. Default: that of the SDK, or us-east-1 with an Endpoint.
	Region string
	// PathStyle puts the bucket name into the path, as MinIO and versitygw need it.
	PathStyle bool
	// AccessKey and SecretKey are static credentials. Default: the credentials chain of the SDK.
	AccessKey string
	SecretKey string
}

// Store is an S3 store. It is safe for concurrent use.
type Store struct {
	client   *s3.Client
	clock    *storeClock
	partSize int64
}

var (
	_ bucket.Store    = (*Store)(nil)
	_ bucket.Reporter = (*Store)(nil)
)

// New returns a Store. It does not send requests; [Store.Check] does.
func New(ctx context.Context, c Config) (*Store, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	// Otherwise the SDK writes warnings to standard error.
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
		t.IdleConnTimeout = 50 * time.Second   // after a pause, open new connections
		t.MaxIdleConnsPerHost = t.MaxIdleConns // all requests go to one host
	})}
	return &Store{clock: clock, partSize: partSize, client: s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.UsePathStyle, o.HTTPClient = c.PathStyle, clock
		if c.Endpoint != "" {
			o.BaseEndpoint = aws.String(c.Endpoint)
		}
		// Otherwise the SDK sends a trailing checksum, which requires TLS or a body that can be
		// read twice.
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		o.DisableLogOutputChecksumValidationSkipped = true
	})}, nil
}

// Endpoint returns the configured URL of the store, or "" for AWS.
func (s *Store) Endpoint() string { return aws.ToString(s.client.Options().BaseEndpoint) }

// Client returns the S3 client, for requests that bucket.Store does not support.
func (s *Store) Client() *s3.Client { return s.client }

// responseTimeout ends with the first byte of the response.
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

// Check returns an error unless the bucket exists and can be listed. Without the permission to
// list, S3 denies access to missing objects. The error matches ErrNoBucket, ErrDenied, ErrInvalid
// or ErrUnavailable.
func (s *Store) Check(ctx context.Context, name string) error {
	// The response to HEAD would contain no reason.
	_, err := s.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &name, MaxKeys: aws.Int32(1)}, requireListing, withoutRetries)
	if err != nil && !errors.Is(err, errUnlistablePage) { // with errUnlistablePage, the bucket exists
		return readError("checking", event.Object{Bucket: name}, err)
	}
	return nil
}

// credentialsChain marks errors of the provider. The SDK does not distinguish them from a broken
// connection.
type credentialsChain struct{ aws.CredentialsProvider }

// Retrieve implements [aws.CredentialsProvider].
func (c credentialsChain) Retrieve(ctx context.Context) (aws.Credentials, error) {
	got, err := c.CredentialsProvider.Retrieve(ctx)
	if err != nil && ctx.Err() == nil {
		return got, fmt.Errorf("%w: %w", errNoCredentials, err)
	}
	return got, err
}
